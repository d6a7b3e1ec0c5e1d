"""Real servers for the tests: Redis or Valkey, workers, and a proxy that misbehaves on purpose."""
