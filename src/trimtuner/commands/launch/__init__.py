"""What launches the recommendation elsewhere: a function from ``Plan`` to text for each format, in ``formats``."""
