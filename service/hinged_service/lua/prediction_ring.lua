-- Shared by the scripts that know of predictions waiting for their labels.
--
-- The ring is eight hashes. One takes new predictions, the six before it wait, and the eighth,
-- the oldest, has expired: its ids are kept for one more turn, to tell too late from never. The
-- ring turns every sixth of the stream's `wait_ms`, so that a prediction waits at least that long.
--
-- An id's value: 'L' + 28 hex digits: labelled, by the digest of features and label (and, where
-- the label came first, the name of the request whose prediction it was joined to);
-- 'E' + 14 hex digits + the label's JSON: a label that came before its prediction;
-- else a waiting prediction, as msgpack: {digest of the features, features as JSON, ms since 1970,
-- flat list of (model uid, label as JSON)}.

local SLOTS = 8

-- The ring, from the stream's meta; `free` is the number of predictions and early labels that may
-- still be added, `last` the id of the log's last entry, which a stream without its meta lacks.
local function ring_of(meta)
  local r = redis.call('HMGET', meta, 'slot', 'slot_start', 'wait_ms', 'max_waiting', 'retiring',
    'early', 'waiting', 'early_waiting', 'last')
  return {slot = tonumber(r[1] or 0), start = tonumber(r[2]), wait = tonumber(r[3] or 86400000),
    free = tonumber(r[4] or 100000) - tonumber(r[7] or 0) - tonumber(r[8] or 0),
    retiring = r[5], early = r[6] == '1', last = r[9]}
end

-- The slot that has expired.
local function oldest(ring) return (ring.slot + 1) % SLOTS end

-- Turn the ring as often as it is due; with a default label one turn waits for the one before.
-- After an outage overdue slots expire one by one: else a late label would count as unknown.
local function turn(meta, slots, ring, now_ms)
  if not ring.start or now_ms < ring.start then -- new, or the clock was set back
    ring.start = now_ms
    redis.call('HSET', meta, 'slot', ring.slot, 'slot_start', now_ms)
  end
  local step = math.ceil(ring.wait / 6)
  local turns = 0
  while now_ms - ring.start >= step and not ring.retiring and turns < SLOTS do
    local gone = oldest(ring)
    redis.call('UNLINK', slots[gone + 1])
    ring.slot, ring.start, turns = gone, ring.start + step, turns + 1
    local late = oldest(ring)
    local waiting = tonumber(redis.call('HGET', meta, 'waiting:' .. late) or 0)
    local early = tonumber(redis.call('HGET', meta, 'early:' .. late) or 0)
    redis.call('HDEL', meta, 'waiting:' .. late, 'early:' .. late)
    if early > 0 then
      redis.call('HINCRBY', meta, 'early_waiting', -early)
      ring.free = ring.free + early
      redis.call('HINCRBY', meta, 'labels_unclaimed', early)
    end
    if waiting > 0 then
      redis.call('HINCRBY', meta, 'waiting', -waiting)
      ring.free = ring.free + waiting
      if redis.call('HEXISTS', meta, 'default') == 1 then
        ring.retiring = tostring(late)
        redis.call('HSET', meta, 'retiring', late, 'cursor', '0', 'retiring_left', waiting,
          'passes', 0)
      else
        redis.call('HINCRBY', meta, 'labels_expired', waiting)
      end
    end
    if waiting + early > 0 and not ring.retiring then -- stays known as expired for a whole turn
      ring.start = now_ms
    end
  end
  if turns == SLOTS then ring.start = now_ms end
  if turns > 0 then redis.call('HSET', meta, 'slot', ring.slot, 'slot_start', ring.start) end
end

-- Let entries of the current slot wait the full time: while an older slot is retired, the ring may
-- be turns behind, which are not made up for then.
local function enter(meta, ring, now_ms)
  if now_ms - ring.start >= math.ceil(ring.wait / 6) then
    ring.start = now_ms
    redis.call('HSET', meta, 'slot_start', now_ms)
  end
end

-- The first value of JSON, `nil` if it is none.
local function decoded(text)
  local sound, found = pcall(cjson.decode, text)
  if not sound then return nil end
  return found
end

-- The waiting prediction that an id's value holds; `nil` if it is damaged.
local function prediction_in(value)
  local sound, p = pcall(cmsgpack.unpack, value)
  if not (sound and type(p) == 'table' and type(p[1]) == 'string' and #p[1] == 14
      and type(p[2]) == 'string' and type(decoded(p[2])) == 'table'
      and type(p[3]) == 'number' and type(p[4]) == 'table' and #p[4] % 2 == 0) then
    return nil
  end
  for i = 1, #p[4], 2 do
    if type(p[4][i]) ~= 'string' or string.find(p[4][i], '["\\%c]') or type(p[4][i + 1]) ~= 'string'
      or decoded(p[4][i + 1]) == nil then
      return nil
    end
  end
  return p
end

-- Note the id of a damaged prediction, for people to know and for a repair to remove.
local MOST_NOTED = 100
local function note_unreadable(meta, id)
  local field = 'unreadable:prediction ' .. id
  if redis.call('HEXISTS', meta, field) == 1 then return end
  if redis.call('HINCRBY', meta, 'unreadable', 1) <= MOST_NOTED then
    redis.call('HSET', meta, field, '1')
  end
end

-- A damaged prediction was replaced or removed: nothing is left to report of it.
local function forget_unreadable(meta, id)
  if redis.call('HDEL', meta, 'unreadable:prediction ' .. id) == 1 then
    redis.call('HINCRBY', meta, 'unreadable', -1)
  end
end

-- Whether an id's value is a sound label that came before its prediction.
local function is_early(value)
  return string.sub(value, 1, 1) == 'E' and type(decoded(string.sub(value, 16))) == 'table'
end

-- An early label, which waited in a slot, has its event.
local function claim(meta, ring, slot)
  if slot ~= oldest(ring) then
    redis.call('HINCRBY', meta, 'early:' .. slot, -1)
    redis.call('HINCRBY', meta, 'early_waiting', -1)
  end
end

-- Look up at most 1,000 ids in the ring, newest slots first: value and slot of each.
local function waiting_of(slots, ring, ids)
  local found = {}
  local all = redis.call('EXISTS', unpack(slots)) == SLOTS
  for back = 0, SLOTS - 1 do
    local slot = (ring.slot - back) % SLOTS
    if all or redis.call('EXISTS', slots[slot + 1]) == 1 then
      local values = redis.call('HMGET', slots[slot + 1], unpack(ids))
      for i = 1, #ids do
        if values[i] and not found[i] then found[i] = {values[i], slot} end
      end
    end
  end
  return found
end

-- One prediction as JSON of the log, for the event it is joined to; `more` is further JSON.
local function joined_text(index, prediction, with_features, more)
  local served = {}
  for i = 1, #prediction[4], 2 do
    served[#served + 1] = '"' .. prediction[4][i] .. '":' .. prediction[4][i + 1]
  end
  local x = with_features and '"x":' .. prediction[2] .. ',' or ''
  return '"' .. index .. '":{' .. x .. '"at":' .. string.format('%.0f', prediction[3])
    .. ',"served":{' .. table.concat(served, ',') .. '}' .. (more or '') .. '}'
end

-- Note that an id has its label: {slot, id, digest of features and label, whether it is joined to
-- what waited, whether that was a label}.
local function settle(meta, slots, ring, part)
  redis.call('HSET', slots[part[1] + 1], part[2], 'L' .. part[3])
  if part[5] then
    claim(meta, ring, part[1])
  elseif part[4] then
    redis.call('HINCRBY', meta, 'waiting:' .. part[1], -1)
    redis.call('HINCRBY', meta, 'waiting', -1)
  elseif ring.retiring == tostring(part[1]) then -- it was to get the default label
    redis.call('HINCRBY', meta, 'retiring_left', -1)
    redis.call('HINCRBY', meta, 'labels_expired', 1)
  end
end
