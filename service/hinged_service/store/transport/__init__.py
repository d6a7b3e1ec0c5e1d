"""Connections to Redis or Valkey: standalone, Sentinel, cluster."""
