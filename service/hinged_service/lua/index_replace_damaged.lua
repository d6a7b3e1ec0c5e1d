#!lua
-- Replace one entry of the index that cannot be read, if it is still the one that was seen.
--
-- KEYS 1 index
-- ARGV 1 name  2 the entry as it was seen  3 new entry as JSON ('' = remove)
--
-- Reply: 1 if it was replaced, else 0

if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1
