#!lua
-- Note what is damaged in a stream's log, for all workers to know.
--
-- KEYS 1 meta  2 followers
-- ARGV 1 model uid  2 id of the entry past which no worker can read, or ''
--      3… ids of entries that do not follow from the one before, and are left out
--
-- Reply: 1, or 0 if the model does not follow the stream

local MOST_NOTED = 100
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
if redis.call('EXISTS', KEYS[1]) == 0 then error({err = 'STREAMLOST meta'}) end
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'damaged:' .. ARGV[1], ARGV[2]) end
for i = 3, math.min(#ARGV, 2 + MOST_NOTED) do
  redis.call('HSET', KEYS[1], 'foreign:' .. ARGV[i], '1')
end
return 1
