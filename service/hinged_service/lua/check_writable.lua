#!lua
-- Writes nothing, but is refused whenever a write would be: read-only replica, out of memory,
-- disk error, too few replicas, a user who lost the right to a command that appends need.
--
-- KEYS 1 index  2 a log that there never is, since no stream is named like the index

redis.call('HGET', KEYS[1], '')
redis.call('HMGET', KEYS[1], '')
redis.call('HDEL', KEYS[1], '')
redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
redis.call('XADD', KEYS[2], 'NOMKSTREAM', '*', '', '')
return 1
