#!lua
-- Append a command to a stream's log, once under its name.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 producers  5 state of the checkpoint that it names, if any
-- ARGV 1 uid of the model that is commanded
--      2 producer, 3 sequence: name the command
--      4 payload: the command as JSON  5 sha1 of the payload
--      6 uid of the checkpoint, or ''  7 fold tag of the caller
--
-- Replies: gone | stale | missing (no such checkpoint) | replay, id, chain | ok, id, chain
--        | other, fold tag: workers of another tag fold the model
--#include producer_replies
--#include append_command_entry

local meta, log, producers = KEYS[1], KEYS[2], KEYS[4]
local uid, producer, sequence, checkpoint = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[6]

if redis.call('HEXISTS', KEYS[3], uid) == 0 then return {'gone'} end
local record = redis.call('HGET', producers, producer)
local r = batch_in(record)
if r then
  if r[1] == sequence then return {'replay', r[2], r[3]} end
  if r[1] > sequence then return {'stale'} end
end
local fold = redis.call('HGET', meta, 'fold:' .. uid)
if fold and fold ~= ARGV[7] then return {'other', fold} end
if checkpoint ~= '' and redis.call('EXISTS', KEYS[5]) == 0 then return {'missing'} end

local id, chain = append_command(meta, log, producer .. ':' .. ARGV[3], ARGV[4], ARGV[5])
if checkpoint ~= '' then redis.call('HSET', meta, 'pin:' .. checkpoint .. ':' .. uid, id) end
local now = redis.call('TIME')
note_batch(producers, producer, record,
  {sequence, id, chain, '[]', {}, now[1] * 1000 + math.floor(now[2] / 1000)})
return {'ok', id, chain}
