"""One file a verb: what ``trimtuner VERB`` takes, and whom it calls. Only light imports at the top of each."""
