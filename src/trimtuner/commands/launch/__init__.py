"""What launches the recommendation elsewhere: one module for each format, one table of them in ``formats``."""
