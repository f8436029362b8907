"""The job file: YAML 1.2 read into a checked job, with every fault named by its line."""
