#!lua
-- Let an alias mean another model, once per decision.
--
-- KEYS 1 followers  2 aliases
-- ARGV 1 alias  2 uid that it means now ('' = it is not set yet)  3 uid that it is to mean
--      4 the decision's name ('' = none)
--
-- Replies: gone (no such follower) | moved, uid (it means another) | made, uid (that decision was
-- carried out before) | ok, uid

local KEPT_DECISIONS = 100

if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return {'gone'} end
local found = redis.call('HGET', KEYS[2], ARGV[1])
local readable, value = pcall(cjson.decode, found or '')
if not readable or type(value) ~= 'table' or type(value.uid) ~= 'string'
  or type(value.decisions) ~= 'table' then
  value = {uid = '', decisions = {}} -- not set yet, or damaged: as if not set
end
if ARGV[4] ~= '' then
  for _, decision in ipairs(value.decisions) do
    if decision == ARGV[4] then return {'made', value.uid} end
  end
end
local moved = value.uid ~= ARGV[2]
if moved and ARGV[4] == '' then return {'moved', value.uid} end
if not moved then value.uid = ARGV[3] end
if ARGV[4] ~= '' then table.insert(value.decisions, ARGV[4]) end -- also of one that came too late
if #value.decisions > KEPT_DECISIONS then table.remove(value.decisions, 1) end
redis.call('HSET', KEYS[2], ARGV[1], cjson.encode(value))
return {moved and 'moved' or 'ok', value.uid}
