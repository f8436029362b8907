"""Trials on a Ray cluster, by Ray's own tasks and actors; nothing here is imported before a job asks for it."""
