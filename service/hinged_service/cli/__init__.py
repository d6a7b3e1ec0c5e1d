"""The command line `hinged`."""
