"""At home in other libraries: their searches with our decisions, their trackers with our measurements."""
