"""Keys of job files, declared once where their values live: the reader, the schema and the reference follow."""
