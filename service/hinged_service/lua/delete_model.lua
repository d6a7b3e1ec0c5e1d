#!lua
-- Remove a model from its stream; the last follower takes the stream's keys with it.
-- Repeating it changes nothing.
--
-- KEYS 1 meta  2 followers  3… the stream's other keys, then the model's own
-- ARGV 1 model uid  2 number of the model's own keys, at the end of KEYS
--
-- Reply: 1 if the stream went too, else 0

local own = tonumber(ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[1], 'hold:' .. ARGV[1], 'aside:' .. ARGV[1])
for i = #KEYS - own + 1, #KEYS do redis.call('UNLINK', KEYS[i]) end
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
for i = 1, #KEYS - own do redis.call('UNLINK', KEYS[i]) end
return 1
