#!lua
-- Writes nothing, but is refused whenever a write would be: read-only replica, out of memory,
-- disk error, too few replicas.
return 1
