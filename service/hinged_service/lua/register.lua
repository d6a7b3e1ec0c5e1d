#!lua
-- Make a model a follower of a stream, at the log's end; make the stream if it is new.
-- Repeating it changes nothing.
--
-- KEYS 1 meta  2 log  3 followers
-- ARGV 1 model uid  2 uid for a new stream  3 ms and 4 number of ids a new stream remembers
--
-- Reply: position id, position chain

local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local stored = redis.call('HGET', followers, ARGV[1])
if stored then
  local id, chain = string.match(stored, '^(%S+) (%S+)$')
  return {id, chain}
end
local m = redis.call('HMGET', meta, 'last', 'chain')
local last, chain = m[1], m[2]
if not last then
  local now = redis.call('TIME')
  chain = redis.sha1hex(ARGV[2])
  last = redis.call('XADD', log, '*', 'genesis', ARGV[2], 'chain', chain, 'bytes', 0)
  redis.call('HSET', meta, 'uid', ARGV[2], 'last', last, 'chain', chain, 'bytes', 0,
    'generation', 0, 'generation_start', now[1] * 1000 + math.floor(now[2] / 1000),
    'generation_ids', 0, 'seen_ms', ARGV[3], 'seen_ids', ARGV[4])
end
redis.call('HSET', followers, ARGV[1], last .. ' ' .. chain)
return {last, chain}
