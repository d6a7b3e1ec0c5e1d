#!lua
-- Note on a stream the index entry of one of its models, so that a lost index can be mended.
--
-- KEYS 1 meta  2 followers
-- ARGV 1 model uid  2 name of the model, space, its index entry
--
-- A lost meta is not made again: its loss must be seen.

if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], 'entry:' .. ARGV[1], ARGV[2])
end
