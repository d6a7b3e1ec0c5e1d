#!lua
-- Make a model a follower of a stream; make the stream if it is new.
-- Repeating it changes nothing.
--
-- KEYS 1 meta  2 log  3 followers  4 state of the checkpoint that the model starts with, if any
-- ARGV 1 model uid  2 uid for a new stream  3 ms and 4 number of ids a new stream remembers
--      5 where it starts: now | log (the oldest entry) | an entry id, with 6 its chain
--      7 uid of the checkpoint, or ''
--      8 events and 9 payload bytes that the stream is to keep at least, or ''
--      10 ms that predictions wait for labels, 11 how many, 12 default label as JSON or '',
--         13 its digest, 14 whether labels may come first (1 or 0); 15 whether the model says so
--         (1), or these are what a stream has of which no model says
--      16 fold tag of the caller, whose like fold the model until it is upgraded
--
-- Replies: lost (the log does not hold that entry) | missing (no such checkpoint)
--        | other (predictions wait on the stream under other rules)
--        | ok, position id, position chain
--#include common

local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local uid, where, checkpoint = ARGV[1], ARGV[5], ARGV[7]
local stored = redis.call('HGET', followers, uid)
if stored then
  local id, chain = words(stored)
  return {'ok', id, chain}
end
if checkpoint ~= '' and redis.call('EXISTS', KEYS[4]) == 0 then return {'missing'} end

local LATE = {'wait_ms', 'max_waiting', 'default', 'default_digest', 'early'}
local late = redis.call('HMGET', meta, 'predicted', unpack(LATE))
if late[1] and ARGV[15] == '1' then
  for i = 1, #LATE do
    if (late[1 + i] or '') ~= ARGV[9 + i] then return {'other'} end
  end
end

local m = redis.call('HMGET', meta, 'last', 'chain', 'keep_events', 'keep_bytes')
local last, chain = m[1], m[2]
if not last and redis.call('EXISTS', log, followers) > 0 then
  error({err = 'STREAMLOST meta'})
elseif last and redis.call('EXISTS', log) == 0 then
  error({err = 'STREAMLOST log'})
end
if not last then
  if where ~= 'now' and where ~= 'log' then return {'lost'} end
  local now = redis.call('TIME')
  chain = redis.sha1hex(ARGV[2])
  last = redis.call('XADD', log, '*', 'genesis', ARGV[2], 'chain', chain, 'bytes', 0, 'count', 0)
  redis.call('HSET', meta, 'uid', ARGV[2], 'last', last, 'chain', chain, 'bytes', 0, 'count', 0,
    'generation', 0, 'generation_start', now[1] * 1000 + math.floor(now[2] / 1000),
    'generation_ids', 0, 'seen_ms', ARGV[3], 'seen_ids', ARGV[4])
elseif where == 'log' then
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if not first then return {'lost'} end
  last, chain = first[1], field_of(first[2], 'chain')
elseif where ~= 'now' then
  if not holds(log, last, chain, where, ARGV[6]) then return {'lost'} end
  last, chain = where, ARGV[6]
end
for i, kept in ipairs({'keep_events', 'keep_bytes'}) do
  local asked = tonumber(ARGV[7 + i])
  if asked and asked > (tonumber(m[2 + i]) or -1) then
    redis.call('HSET', meta, kept, ARGV[7 + i])
  end
end
if not late[2] or ARGV[15] == '1' then
  for i = 1, #LATE do
    if ARGV[9 + i] ~= '' then
      redis.call('HSET', meta, LATE[i], ARGV[9 + i])
    else
      redis.call('HDEL', meta, LATE[i])
    end
  end
end
if checkpoint ~= '' then redis.call('HSET', meta, 'pin:' .. checkpoint .. ':' .. uid, 'base') end
redis.call('HSET', meta, 'fold:' .. uid, ARGV[16])
redis.call('HSET', followers, uid, last .. ' ' .. chain)
return {'ok', last, chain}
