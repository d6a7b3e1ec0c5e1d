#!lua
-- Turn the ring of waiting predictions; give those that waited in vain the stream's default label.
--
-- KEYS 1 meta  2 log  3 seen:0  4 seen:1  5… the ring's slots
-- ARGV 1 most predictions to label in this call, about, 2 and most bytes of what is joined
--
-- Reply: 1 if there is more to do at once, else 0
--#include append_entry
--#include dedup_window
--#include prediction_ring

local MOST_PASSES = 8
local meta, log = KEYS[1], KEYS[2]
if redis.call('HEXISTS', meta, 'predicted') == 0 then return 0 end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local slots = {}
for i = 1, SLOTS do slots[i] = KEYS[4 + i] end
local ring = ring_of(meta)
turn(meta, slots, ring, now_ms)
if not ring.retiring then return 0 end

local late = tonumber(ring.retiring)
local d = redis.call('HMGET', meta, 'cursor', 'default', 'default_digest', 'retiring_left',
  'passes')
local reply = redis.call('HSCAN', slots[late + 1], d[1], 'COUNT', ARGV[1])
local events, joined, marked = {}, {}, {}
local bytes, full = 0, false
local done, damaged = {}, 0
for i = 1, #reply[2], 2 do
  local id, value = reply[2][i], reply[2][i + 1]
  local kind = string.sub(value, 1, 1)
  if kind ~= 'L' and kind ~= 'E' and not done[id] then
    if bytes >= tonumber(ARGV[2]) then
      full = true
      break
    end
    done[id] = true
    local prediction = prediction_in(value)
    if not prediction then -- damaged: it cannot be labelled
      redis.call('HDEL', slots[late + 1], id)
      forget_unreadable(meta, id)
      damaged = damaged + 1
    else
      local digest = prediction[1] .. d[3]
      events[#events + 1] = '{"id":' .. cjson.encode(id) .. ',"y":' .. d[2] .. '}'
      joined[#joined + 1] = joined_text(#events - 1, prediction, true, ',"default":true')
      bytes = bytes + #joined[#joined]
      marked[#marked + 1] = id
      marked[#marked + 1] = digest
      redis.call('HSET', slots[late + 1], id, 'L' .. digest)
    end
  end
end
if #events > 0 then
  local payload = '[' .. table.concat(events, ',') .. ']'
  append_entry(meta, log, redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'count'),
    'default:' .. late, payload, redis.sha1hex(payload), {}, #events,
    '{' .. table.concat(joined, ',') .. '}')
  mark_seen(meta, {KEYS[3], KEYS[4]}, redis.call('HMGET', meta, 'generation', 'generation_start',
    'generation_ids', 'seen_ms', 'seen_ids'), marked, now_ms)
  redis.call('HINCRBY', meta, 'labels_defaulted', #events)
end
if damaged > 0 then redis.call('HINCRBY', meta, 'labels_expired', damaged) end
-- A server that was restarted has its hashes in another order: a pass may miss some. What is left
-- is counted, and passes go on until nothing is (or, damaged, the count is wrong).
local left = redis.call('HINCRBY', meta, 'retiring_left', -#events - damaged)
local passes = tonumber(d[5] or 0)
if full then return 1 end -- the same part of the slot again
if reply[1] == '0' then passes = passes + 1 end
if left <= 0 or passes >= MOST_PASSES then
  redis.call('HDEL', meta, 'retiring', 'cursor', 'retiring_left', 'passes')
else
  redis.call('HSET', meta, 'cursor', reply[1], 'passes', passes)
end
return 1
