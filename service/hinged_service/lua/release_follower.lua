#!lua
-- Stop waiting for a follower that cannot advance; its next snapshot takes this back.
--
-- KEYS 1 meta  2 followers
-- ARGV 1 model uid

if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 and redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'aside:' .. ARGV[1], 1)
end
