#!lua flags=no-writes
-- The entries of a log after a position.
--
-- KEYS 1 meta  2 log  3 followers
-- ARGV 1 model uid  2 position id  3 position chain  4 byte limit of the reply
--      5 fold tag of the caller
--
-- Replies: gone | lost | other, fold tag: workers of another tag fold the model
--        | damaged, id: from that entry on none follows
--        | ok, snapshot position, more (0/1), entries, ids of entries left out
--#include common
--#include tail

local stored = redis.call('HGET', KEYS[3], ARGV[1])
if not stored then return {'gone'} end
local m = redis.call('HMGET', KEYS[1], 'last', 'chain', 'fold:' .. ARGV[1])
return tail(KEYS[1], KEYS[2], stored, m, ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5])
