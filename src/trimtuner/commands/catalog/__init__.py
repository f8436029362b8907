"""``trimtuner catalog``: prices listed, filtered and fetched anew."""
