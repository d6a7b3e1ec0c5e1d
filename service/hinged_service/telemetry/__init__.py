"""What a worker tells of itself: metrics, logs, traces."""
