"""Views of running models: live feed, overview, recent events, bounds, metrics."""
