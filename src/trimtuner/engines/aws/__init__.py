"""Trials on machines rented from AWS for each of them; nothing here is imported before a job asks for it."""
