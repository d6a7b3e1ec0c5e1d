#!lua
-- Keep a state, sent before in chunks to temporary hashes, as a checkpoint of its stream.
--
-- KEYS 1 meta  2 log  3 followers  4 checkpoints  5 state
--      then per vector: its hash, its temporary hash
-- ARGV 1 checkpoint uid  2 its name, or ''  3 its description (JSON)
--      4 model uid, 5 position id, 6 position chain: where the state stands; '' for an imported one
--      7 state: flat field, value list (msgpack)
--      8… per vector: how many names were sent
--
-- Replies: gone | lost | taken (the name) | full | incomplete | ok
--#include common

local MAX_CHECKPOINTS = 1000
local checkpoints = KEYS[4]

if redis.call('HEXISTS', checkpoints, ARGV[1]) == 1 then return {'ok'} end
if ARGV[4] ~= '' then
  if redis.call('HEXISTS', KEYS[3], ARGV[4]) == 0 then return {'gone'} end
  local m = redis.call('HMGET', KEYS[1], 'last', 'chain')
  if not holds(KEYS[2], m[1], m[2], ARGV[5], ARGV[6]) then return {'lost'} end
end
if ARGV[2] ~= '' and redis.call('HEXISTS', checkpoints, 'name:' .. ARGV[2]) == 1 then
  return {'taken'}
end
if redis.call('HLEN', checkpoints) >= 2 * MAX_CHECKPOINTS then return {'full'} end
for v = 6, #KEYS, 2 do
  if redis.call('HLEN', KEYS[v + 1]) ~= tonumber(ARGV[8 + (v - 6) / 2]) then
    return {'incomplete'}
  end
end
for v = 6, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[v + 1]) == 1 then
    redis.call('RENAME', KEYS[v + 1], KEYS[v])
    redis.call('PERSIST', KEYS[v])
  end
end
redis.call('HSET', KEYS[5], unpack(cmsgpack.unpack(ARGV[7])))
redis.call('HSET', checkpoints, ARGV[1], ARGV[3])
if ARGV[2] ~= '' then redis.call('HSET', checkpoints, 'name:' .. ARGV[2], ARGV[1]) end
return {'ok'}
