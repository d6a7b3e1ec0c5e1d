#!lua flags=no-writes
-- A model's snapshot, all of it at one moment.
--
-- KEYS 1 followers  2… the lasting keys of the snapshot
-- ARGV 1 model uid
--
-- Reply: the position of the snapshot, or nothing; per key its fields and values.

local found = {redis.call('HGET', KEYS[1], ARGV[1])}
for i = 2, #KEYS do found[i] = redis.call('HGETALL', KEYS[i]) end
return found
