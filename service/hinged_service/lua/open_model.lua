#!lua flags=no-writes
-- A small model's snapshot and the log behind it, all of one moment.
--
-- KEYS 1 meta  2 log  3 followers  4 state  5… one hash per kind of vector
-- ARGV 1 model uid  2 byte limit of the entries  3 fold tag of the caller
--      4 most names and 5 most bytes of the rest that a small model has
--
-- Replies: large: read it in pieces
--        | position and chain of the snapshot; state, field, value list; per kind of vector its
--          field, value list; bytes and count at the snapshot's entry, none if it is gone;
--          retention, events and bytes; the model's last upgrade; a reply as of `catch_up`
--#include common
--#include tail

local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local uid = ARGV[1]
local stored = redis.call('HGET', followers, uid)
local m = redis.call('HMGET', meta, 'last', 'chain', 'fold:' .. uid, 'barrier:' .. uid,
  'keep_events', 'keep_bytes')
if not stored or not m[1] then return {'large'} end
local names = 0
for v = 5, #KEYS do names = names + redis.call('HLEN', KEYS[v]) end
if names > tonumber(ARGV[4]) then return {'large'} end
if redis.call('HSTRLEN', KEYS[4], 'scalars') > tonumber(ARGV[5]) then return {'large'} end
local vectors = {}
for v = 5, #KEYS do vectors[v - 4] = redis.call('HGETALL', KEYS[v]) end
local id, chain = words(stored)
local entry = redis.call('XRANGE', log, id, id)
local mark = {}
if #entry > 0 then
  mark = {field_of(entry[1][2], 'bytes'), field_of(entry[1][2], 'count')}
end
return {id, chain, redis.call('HGETALL', KEYS[4]), vectors, mark, m[5] or '', m[6] or '',
  m[4] or '', tail(meta, log, stored, m, id, chain, tonumber(ARGV[2]), ARGV[3])}
