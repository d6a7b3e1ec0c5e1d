"""Redis as the service sees it. Nothing outside this package imports redis."""
