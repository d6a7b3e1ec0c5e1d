"""Kafka topics as a source of labelled events."""
