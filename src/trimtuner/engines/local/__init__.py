"""Commands on this machine (Linux), each under a small supervisor, so that the driver may be killed at any instant."""
