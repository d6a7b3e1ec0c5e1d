"""Redis as the service sees it: the only package that imports redis for the log."""
