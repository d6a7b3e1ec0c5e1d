#!lua
-- Ask that a model's snapshot stay as it is for a while, so that it can be read in pieces.
-- One hold per snapshot: it is shared while it lasts and not renewed after.
--
-- KEYS 1 meta  2 followers
-- ARGV 1 model uid  2 ms
--
-- Replies: gone | ok, position id that is held
--#include common

local stored = redis.call('HGET', KEYS[2], ARGV[1])
if not stored then return {'gone'} end
if redis.call('EXISTS', KEYS[1]) == 0 then error({err = 'STREAMLOST meta'}) end
local position = words(stored)
local field = 'hold:' .. ARGV[1]
local hold = redis.call('HGET', KEYS[1], field)
if not hold or words(hold) ~= position then
  local now = redis.call('TIME')
  local till = now[1] * 1000 + math.floor(now[2] / 1000) + tonumber(ARGV[2])
  redis.call('HSET', KEYS[1], field, position .. ' ' .. till)
end
return {'ok', position}
