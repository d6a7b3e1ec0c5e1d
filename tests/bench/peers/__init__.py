"""Peers of the service: the least that could answer, and what people write."""
