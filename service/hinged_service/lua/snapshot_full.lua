#!lua
-- Put a whole snapshot, sent before in chunks to temporary hashes, in place of the stored one.
--
-- KEYS 1 meta  2 log  3 followers  4 state  then per vector: its hash, its temporary hash
-- ARGV 1 model uid  2 new position id  3 its chain
--      4 state: flat field, value list (msgpack)  5 oldest entry id that retention wants
--      6 fold tag of the caller  7… per vector: how many names were sent
--
-- Replies: gone | other, fold tag | lost | stored, position | later | incomplete
--        | ok, trimmed, events and bytes that the stream is to keep
--#include common
--#include snapshot_check

local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local no = refusal(meta, log, followers, ARGV[1], ARGV[2], ARGV[3], ARGV[6], true)
if no then return no end
for v = 5, #KEYS, 2 do
  if redis.call('HLEN', KEYS[v + 1]) ~= tonumber(ARGV[7 + (v - 5) / 2]) then
    return {'incomplete'}
  end
end
for v = 5, #KEYS, 2 do
  redis.call('UNLINK', KEYS[v])
  if redis.call('EXISTS', KEYS[v + 1]) == 1 then
    redis.call('RENAME', KEYS[v + 1], KEYS[v])
    redis.call('PERSIST', KEYS[v])
  end
end
return commit(meta, log, followers, KEYS[4], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
