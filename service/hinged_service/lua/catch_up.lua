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

local stored = redis.call('HGET', KEYS[3], ARGV[1])
if not stored then return {'gone'} end
local m = redis.call('HMGET', KEYS[1], 'last', 'chain', 'fold:' .. ARGV[1])
if not m[1] then error({err = 'STREAMLOST meta'}) end
if redis.call('EXISTS', KEYS[2]) == 0 then error({err = 'STREAMLOST log'}) end
if m[3] and m[3] ~= ARGV[5] then return {'other', m[3]} end
if not holds(KEYS[2], m[1], m[2], ARGV[2], ARGV[3]) then return {'lost'} end
local found, more, left_out, damaged =
  entries_after(KEYS[1], KEYS[2], m[1], m[2], ARGV[2], ARGV[3], tonumber(ARGV[4]))
if not found then return {'lost'} end
if damaged and #found == 0 then return {'damaged', damaged} end
return {'ok', (words(stored)), damaged and 1 or more, found, left_out}
