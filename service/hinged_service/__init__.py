"""The hinged service: learning over HTTP, durable in Redis."""
