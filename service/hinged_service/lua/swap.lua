#!lua
-- Compare and set one field of the index.
--
-- KEYS 1 index
-- ARGV 1 field  2 expected value ('' = absent)  3 new value ('' = remove)
--
-- Reply: 1 if it was set; else 0 and the value found ('' = absent)

local found = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if found ~= ARGV[2] then return {0, found} end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return {1, ARGV[3]}
