#!lua
-- Append a command to a stream's log, once under its name.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 producers  5 state of the checkpoint that it names, if any
-- ARGV 1 uid of the model that is commanded
--      2 producer, 3 sequence: name the command
--      4 payload: the command as JSON  5 sha1 of the payload
--      6 uid of the checkpoint, or ''
--
-- Replies: gone | stale | missing (no such checkpoint) | replay, id, chain | ok, id, chain
--#include producers

local meta, log, producers = KEYS[1], KEYS[2], KEYS[4]
local uid, producer, sequence, checkpoint = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[6]

if redis.call('HEXISTS', KEYS[3], uid) == 0 then return {'gone'} end
local record = redis.call('HGET', producers, producer)
if record then
  local r = cmsgpack.unpack(record)
  if r[1] == sequence then return {'replay', r[2], r[3]} end
  if r[1] > sequence then return {'stale'} end
end
if checkpoint ~= '' and redis.call('EXISTS', KEYS[5]) == 0 then return {'missing'} end

local m = redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'count')
local from = producer .. ':' .. ARGV[3]
local chain = redis.sha1hex(m[2] .. m[1] .. from .. ARGV[5] .. '[]')
local bytes = m[3] + #ARGV[4]
local id = redis.call('XADD', log, '*', 'command', ARGV[4], 'from', from, 'chain', chain,
  'bytes', bytes, 'count', m[4])
redis.call('HSET', meta, 'last', id, 'chain', chain, 'bytes', bytes)
if checkpoint ~= '' then redis.call('HSET', meta, 'pin:' .. checkpoint .. ':' .. uid, id) end
local now = redis.call('TIME')
note_batch(producers, producer, record,
  {sequence, id, chain, '[]', {}, now[1] * 1000 + math.floor(now[2] / 1000)})
return {'ok', id, chain}
