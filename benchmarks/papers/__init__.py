"""``make papers``: what the papers print, regenerated from the replay tables, ours beside theirs."""
