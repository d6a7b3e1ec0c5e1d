#!lua
-- Let an alias mean another model, once per decision: it is remembered like an event id.
--
-- KEYS 1 meta  2 followers  3 aliases  4 seen:0  5 seen:1
-- ARGV 1 alias  2 uid that it means now ('' = it is not set yet)  3 uid that it is to mean
--      4 the decision's name ('' = none)
--
-- Replies: gone (no such follower) | moved, uid (it means another) | made, uid (that decision was
-- carried out before) | ok, uid
--#include dedup_window

local meta, followers, aliases = KEYS[1], KEYS[2], KEYS[3]
local NEWEST = 100 -- decisions that stand with the alias, too: once they stood there alone

local window = redis.call('HMGET', meta, 'generation', 'generation_start', 'generation_ids',
  'seen_ms', 'seen_ids')
if not window[1] or redis.call('HEXISTS', followers, ARGV[3]) == 0 then return {'gone'} end
local found = redis.call('HGET', aliases, ARGV[1])
local readable, value = pcall(cjson.decode, found or '')
if not readable or type(value) ~= 'table' or type(value.uid) ~= 'string'
  or type(value.decisions) ~= 'table' then
  value = {uid = '', decisions = {}} -- not set yet, or damaged: as if not set
end
local mark = '\255' .. ARGV[1] .. '\255' .. ARGV[4] -- no UTF-8, so no event id
if ARGV[4] ~= '' then
  local made = redis.call('HEXISTS', KEYS[4], mark) + redis.call('HEXISTS', KEYS[5], mark) > 0
  for _, decision in ipairs(value.decisions) do made = made or decision == ARGV[4] end
  if made then return {'made', value.uid} end
end
local moved = value.uid ~= ARGV[2]
if moved and ARGV[4] == '' then return {'moved', value.uid} end
if not moved then value.uid = ARGV[3] end
if ARGV[4] ~= '' then -- also of one that came too late
  local now = redis.call('TIME')
  table.insert(value.decisions, ARGV[4])
  if #value.decisions > NEWEST then table.remove(value.decisions, 1) end
  mark_seen(meta, {KEYS[4], KEYS[5]}, window, {mark, '1'},
    now[1] * 1000 + math.floor(now[2] / 1000))
end
redis.call('HSET', aliases, ARGV[1], cjson.encode(value))
return {moved and 'moved' or 'ok', value.uid}
