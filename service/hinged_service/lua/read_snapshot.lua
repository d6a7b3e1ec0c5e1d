#!lua flags=no-writes
-- A model's snapshot, all of it at one moment, unless it is large: no other caller is served meanwhile.
--
-- KEYS 1 followers  2… the lasting keys of the snapshot
-- ARGV 1 model uid  2 most fields of the hashes
--
-- Replies: nothing: it is larger
--        | the position of the snapshot, or nothing; per key its fields and values

local size = 0
for i = 2, #KEYS do size = size + redis.call('HLEN', KEYS[i]) end
if size > tonumber(ARGV[2]) then return nil end
local found = {redis.call('HGET', KEYS[1], ARGV[1])}
for i = 2, #KEYS do found[i] = redis.call('HGETALL', KEYS[i]) end
return found
