"""The page to watch: a small server on this machine that reads records and shows their views."""
