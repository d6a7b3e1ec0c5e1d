"""Learning and predicting line by line: bodies of newline-delimited JSON."""
