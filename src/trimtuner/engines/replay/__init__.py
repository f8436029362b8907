"""Trials that are played from a table of measurements: nothing runs, nothing is rented, the rest is as ever."""
