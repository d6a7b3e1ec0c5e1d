#!lua
-- Remove what was noted as unreadable of a stream: predictions that wait, offsets of sources.
--
-- KEYS 1 meta  2 offsets  3… the ring's slots
--
-- Reply: what was removed: "prediction ID" or "offset of SOURCE" each
--#include prediction_ring

local meta, offsets = KEYS[1], KEYS[2]
local slots = {}
for i = 1, SLOTS do slots[i] = KEYS[2 + i] end
local ring = ring_of(meta)

local function remove_prediction(id)
  local waiting = waiting_of(slots, ring, {id})[1]
  local value = waiting and waiting[1]
  if not value or string.sub(value, 1, 1) == 'L' or is_early(value) or prediction_in(value) then
    return false
  end
  redis.call('HDEL', slots[waiting[2] + 1], id)
  if string.sub(value, 1, 1) == 'E' then
    if waiting[2] ~= oldest(ring) then -- else it is counted already
      claim(meta, ring, waiting[2])
      redis.call('HINCRBY', meta, 'labels_unclaimed', 1)
    end
  elseif waiting[2] ~= oldest(ring) then
    redis.call('HINCRBY', meta, 'waiting:' .. waiting[2], -1)
    redis.call('HINCRBY', meta, 'waiting', -1)
    redis.call('HINCRBY', meta, 'labels_expired', 1)
  elseif ring.retiring == tostring(waiting[2]) then
    redis.call('HINCRBY', meta, 'retiring_left', -1)
    redis.call('HINCRBY', meta, 'labels_expired', 1)
  end
  return true
end

local function remove_offset(source)
  local at = redis.call('HGET', offsets, source) or ''
  if at == '' or string.find(at, '^%d+%.?%x*$') or string.find(at, '^%d+%-%d+/?%d*$') then return false end
  redis.call('HDEL', offsets, source)
  return true
end

local removed = {}
for _, field in ipairs(redis.call('HKEYS', meta)) do
  local id = string.match(field, '^unreadable:prediction (.*)$')
  local source = string.match(field, '^unreadable:offset of (.*)$')
  if id and remove_prediction(id) or source and remove_offset(source) then
    removed[#removed + 1] = string.sub(field, 12)
  end
  if id or source then redis.call('HDEL', meta, field) end
end
redis.call('HDEL', meta, 'unreadable')
return removed
