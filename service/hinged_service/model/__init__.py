"""The specification of a model and its state, moved by the entries of its log."""
