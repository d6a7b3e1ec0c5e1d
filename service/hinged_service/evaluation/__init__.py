"""Progressive evaluation: metrics and drift detectors."""
