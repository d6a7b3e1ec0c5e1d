#!lua
-- Keep predictions until their labels come; a label that came first is joined at once.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 seen:0  5 seen:1  6… the ring's slots
-- ARGV 1 model uid
--      2 a name for this request: sent again, it gets the same answers
--      3 callers (msgpack): per caller its number of predictions
--      4… of all predictions: first their ids; then the beginnings of the values that the ring
--        keeps, which are msgpack of an array of four, the digest of the features, and these as
--        JSON; then their predicted labels as JSON
--
-- Replies: gone | ok, per caller 0 if it was kept, else a pair: index of the first prediction
--   that was not, and a KeepRefusal
--#include append_entry
--#include dedup_window
--#include prediction_ring

local KeepRefusal = {OTHER_FEATURES = 1, LABELLED = 2, TOO_MANY_WAIT = 3, WAITED_TOO_LONG = 4}
local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local uid, request = ARGV[1], ARGV[2]
local IDS = 3 -- the words before the ids
local total = (#ARGV - IDS) / 3
local BEGINNINGS, LABELS = IDS + total, IDS + 2 * total
if redis.call('HEXISTS', followers, uid) == 0 then return {'gone'} end
local ring = ring_of(meta)
if not ring.last then error({err = 'STREAMLOST meta'}) end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local slots = {}
for i = 1, SLOTS do slots[i] = KEYS[5 + i] end
turn(meta, slots, ring, now_ms)

-- Look up all ids in the ring, and whether they were seen.
local function known()
  local found, seen = {}, {}
  for from = 1, total, CHUNK do
    local ids = {unpack(ARGV, IDS + from, IDS + math.min(from + CHUNK - 1, total))}
    for i, one in pairs(waiting_of(slots, ring, ids)) do found[from + i - 1] = one end
    for generation = 4, 5 do
      local marks = redis.call('HMGET', KEYS[generation], unpack(ids))
      for i = 1, #ids do
        if marks[i] then seen[from + i - 1] = true end
      end
    end
  end
  return found, seen
end

local endings = {}

-- The value of prediction i as one that waits from now on.
local function value_of(i)
  local label = ARGV[LABELS + i]
  local ending = endings[label]
  if not ending then
    ending = cmsgpack.pack(now_ms, {uid, label})
    endings[label] = ending
  end
  return ARGV[BEGINNINGS + i] .. ending
end

-- The digest of the features of prediction i.
local function digest_of(i) return string.sub(ARGV[BEGINNINGS + i], 3, 16) end

-- The first prediction that a model served for an id is the one that counts.
local function note_served(served, label)
  for i = 1, #served, 2 do
    if served[i] == uid then return end
  end
  served[#served + 1] = uid
  served[#served + 1] = label
end

local found, seen = known()
local kept = {} -- by id the first prediction of this request that is kept
local fresh, changed, early, mended = {}, {}, {}, {}

-- Keep prediction i together with those before it, or return why not.
local function keep(i)
  local id, before = ARGV[IDS + i], found[i]
  if kept[id] then
    return digest_of(kept[id]) ~= digest_of(i) and KeepRefusal.OTHER_FEATURES or nil
  elseif not before then
    if seen[i] then return KeepRefusal.LABELLED end
    local size = #fresh
    if size / 2 >= ring.free then return KeepRefusal.TOO_MANY_WAIT end
    fresh[size + 1], fresh[size + 2] = id, value_of(i)
  elseif string.sub(before[1], 1, 1) == 'L' then
    return string.sub(before[1], 30) ~= request and KeepRefusal.LABELLED or nil
  elseif before[2] == oldest(ring) then
    return KeepRefusal.WAITED_TOO_LONG
  elseif is_early(before[1]) then
    early[#early + 1] = {id, before[1], before[2], cmsgpack.unpack(value_of(i))}
  else
    local waiting = prediction_in(before[1])
    if not waiting then -- damaged, it is replaced
      mended[#mended + 1] = {id, before[2], string.sub(before[1], 1, 1) == 'E'}
      changed[#changed + 1] = {id, before[2], value_of(i)}
    elseif waiting[1] ~= digest_of(i) then
      return KeepRefusal.OTHER_FEATURES
    else
      note_served(waiting[4], ARGV[LABELS + i])
      changed[#changed + 1] = {id, before[2], cmsgpack.pack(waiting)}
    end
  end
  kept[id] = i
end

-- Take back what was kept of the predictions from one to another.
local function take_back(from, to, sizes)
  for i = from, to do
    local id = ARGV[IDS + i]
    if kept[id] and kept[id] >= from then kept[id] = nil end
  end
  for list, size in pairs(sizes) do
    for i = #list, size + 1, -1 do list[i] = nil end
  end
end

local answers = {}
local first = 0
for number, count in ipairs(cmsgpack.unpack(ARGV[3])) do
  local sizes = count > 1
    and {[fresh] = #fresh, [changed] = #changed, [early] = #early, [mended] = #mended}
  answers[number] = 0
  for k = 1, count do
    local why = keep(first + k)
    if why then
      answers[number] = {k - 1, why}
      if k > 1 then take_back(first + 1, first + k - 1, sizes) end
      break
    end
  end
  first = first + count
end

for i = 1, #fresh, 2 * CHUNK do
  redis.call('HSET', slots[ring.slot + 1],
    unpack(fresh, i, math.min(i + 2 * CHUNK - 1, #fresh)))
end
for _, one in ipairs(changed) do redis.call('HSET', slots[one[2] + 1], one[1], one[3]) end
for _, one in ipairs(mended) do
  forget_unreadable(meta, one[1])
  if one[3] then -- a damaged early label became a prediction that waits
    claim(meta, ring, one[2])
    redis.call('HINCRBY', meta, 'waiting:' .. one[2], 1)
    redis.call('HINCRBY', meta, 'waiting', 1)
  end
end
local added = #fresh / 2
if added > 0 then
  enter(meta, ring, now_ms)
  redis.call('HINCRBY', meta, 'waiting:' .. ring.slot, added)
  redis.call('HINCRBY', meta, 'waiting', added)
end
if #early > 0 then
  local events, joined, marked = {}, {}, {}
  table.sort(early, function(a, b) return a[1] < b[1] end)
  for i, one in ipairs(early) do
    local id, label, slot, prediction = unpack(one)
    local digest = prediction[1] .. string.sub(label, 2, 15)
    events[i] = string.sub(label, 16)
    joined[i] = joined_text(i - 1, prediction, true)
    marked[#marked + 1] = id
    marked[#marked + 1] = digest
    redis.call('HSET', slots[slot + 1], id, 'L' .. digest .. request)
    claim(meta, ring, slot)
  end
  local payload = '[' .. table.concat(events, ',') .. ']'
  append_entry(meta, log, redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'count'),
    'early:' .. uid, payload, redis.sha1hex(payload), {}, #events,
    '{' .. table.concat(joined, ',') .. '}')
  mark_seen(meta, {KEYS[4], KEYS[5]}, redis.call('HMGET', meta, 'generation', 'generation_start',
    'generation_ids', 'seen_ms', 'seen_ids'), marked, now_ms)
  redis.call('HINCRBY', meta, 'labels_joined', #events)
end
if added + #early > 0 then redis.call('HINCRBY', meta, 'predicted', added + #early) end
return {'ok', answers}
