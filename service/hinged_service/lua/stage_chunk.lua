#!lua
-- Add one chunk to a temporary hash of a full snapshot; it expires unless it is used.
--
-- KEYS 1 temporary hash
-- ARGV 1 flat name, value list (msgpack)  2 ms to live

local chunk = cmsgpack.unpack(ARGV[1])
local PAIRS = 2000
for i = 1, #chunk, 2 * PAIRS do
  redis.call('HSET', KEYS[1], unpack(chunk, i, math.min(i + 2 * PAIRS - 1, #chunk)))
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
