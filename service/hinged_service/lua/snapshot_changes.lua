#!lua
-- Store a model's snapshot by writing only what changed since `base`.
--
-- KEYS 1 meta  2 log  3 followers  4 state  5… one hash per vector
-- ARGV 1 model uid  2 base: the changed names are complete since this position
--      3 new position id  4 its chain
--      5 state: flat field, value list (msgpack)  6 oldest entry id that retention wants
--      7 fold tag of the caller
--      8… per vector: [flat name, value list; list of names to remove] (msgpack)
--
-- Replies: gone | other, fold tag | lost | stored, position | later
--        | full (Redis holds less than base)
--        | ok, trimmed, events and bytes that the stream is to keep
--#include common
--#include snapshot_check

local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local no, stored = refusal(meta, log, followers, ARGV[1], ARGV[3], ARGV[4], ARGV[7])
if no then return no end
if compare(stored, ARGV[2]) < 0 then return {'full'} end
local PAIRS = 2000
for v = 5, #KEYS do
  local both = cmsgpack.unpack(ARGV[v + 3])
  local changed, removed = both[1], both[2]
  for i = 1, #changed, 2 * PAIRS do
    redis.call('HSET', KEYS[v], unpack(changed, i, math.min(i + 2 * PAIRS - 1, #changed)))
  end
  for i = 1, #removed, PAIRS do
    redis.call('HDEL', KEYS[v], unpack(removed, i, math.min(i + PAIRS - 1, #removed)))
  end
end
return commit(meta, log, followers, KEYS[4], ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
