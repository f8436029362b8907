"""What to test next, whom to recommend."""
