#!lua
-- Keep predictions until their labels come; a label that came first is joined at once.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 seen:0  5 seen:1  6… the ring's slots
-- ARGV 1 model uid
--      2 callers (msgpack): per caller a flat list of (id, digest of the features, features as
--        JSON, predicted label as JSON)
--      3 a name for this request: sent again, it gets the same answers
--
-- Replies: gone | ok, per caller 0 if it was kept, else a pair: index of the first prediction
--   that was not, and a KeepRefusal
--#include append_entry
--#include dedup_window
--#include prediction_ring

local KeepRefusal = {OTHER_FEATURES = 1, LABELLED = 2, TOO_MANY_WAIT = 3, WAITED_TOO_LONG = 4}
local meta, log, followers = KEYS[1], KEYS[2], KEYS[3]
local uid = ARGV[1]
if redis.call('HEXISTS', followers, uid) == 0 then return {'gone'} end
if redis.call('HEXISTS', meta, 'last') == 0 then error({err = 'STREAMLOST meta'}) end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local slots = {}
for i = 1, SLOTS do slots[i] = KEYS[5 + i] end
local ring = ring_of(meta)
turn(meta, slots, ring, now_ms)
local left = free_slots(meta, ring)
local request = ARGV[3]

-- Look up ids in the ring, and whether they were seen.
local function known(ids)
  local found, seen = {}, {}
  for from = 1, #ids, CHUNK do
    local some = {unpack(ids, from, math.min(from + CHUNK - 1, #ids))}
    local waiting = waiting_of(slots, ring, some)
    local now_seen = redis.call('HMGET', KEYS[4], unpack(some))
    local seen_before = redis.call('HMGET', KEYS[5], unpack(some))
    for i = 1, #some do
      found[from + i - 1] = waiting[i]
      seen[from + i - 1] = now_seen[i] or seen_before[i]
    end
  end
  return found, seen
end

-- The first prediction that a model served for an id is the one that counts.
local function note_served(served, model, y)
  for i = 1, #served, 2 do
    if served[i] == model then return end
  end
  served[#served + 1] = model
  served[#served + 1] = y
end

local answers = {}
local fresh, changed, early = {}, {}, {}
local mended = {}
local added = 0
local callers = cmsgpack.unpack(ARGV[2])
local all = {}
for _, caller in ipairs(callers) do
  for i = 1, #caller, 4 do all[#all + 1] = caller[i] end
end
local found, seen = known(all)
local first = 0
for number, caller in ipairs(callers) do
  local answer = 0
  local mine, mine_changed, mine_early, mine_served, mine_mended = {}, {}, {}, {}, {}
  local count = 0
  for k = 1, #caller / 4 do
    local at = 4 * k - 3
    local id, digest, x, y = caller[at], caller[at + 1], caller[at + 2], caller[at + 3]
    local before = found[first + k]
    local waiting = fresh[id] or mine[id] or changed[id] and changed[id][1]
    local joined = early[id] or mine_early[id]
    local why
    if joined then
      if joined[3][1] ~= digest then why = KeepRefusal.OTHER_FEATURES end
    elseif waiting then
      if waiting[1] ~= digest then why = KeepRefusal.OTHER_FEATURES end
    elseif before then
      local kind = string.sub(before[1], 1, 1)
      if kind == 'L' then
        if string.sub(before[1], 30) ~= request then why = KeepRefusal.LABELLED end
      elseif before[2] == oldest(ring) then
        why = KeepRefusal.WAITED_TOO_LONG
      elseif is_early(before[1]) then
        mine_early[id] = {before[1], before[2], {digest, x, now_ms, {uid, y}}}
      else
        waiting = prediction_in(before[1])
        if not waiting then -- damaged, it is replaced
          waiting = {digest, x, now_ms, {}}
          mine_mended[#mine_mended + 1] = {id, before[2], kind == 'E'}
        end
        if waiting[1] ~= digest then
          why = KeepRefusal.OTHER_FEATURES
        else
          mine_changed[id] = {waiting, before[2]}
        end
      end
    elseif seen[first + k] then
      why = KeepRefusal.LABELLED
    elseif count + added >= left then
      why = KeepRefusal.TOO_MANY_WAIT
    else
      mine[id] = {digest, x, now_ms, {uid, y}}
      count = count + 1
    end
    if why then
      answer = {k - 1, why}
      break
    end
    if waiting then mine_served[#mine_served + 1] = {waiting[4], y} end
  end
  first = first + #caller / 4
  answers[number] = answer
  if answer == 0 then
    for _, one in ipairs(mine_mended) do mended[#mended + 1] = one end
    for _, served in ipairs(mine_served) do note_served(served[1], uid, served[2]) end
    added = added + count
    for id, value in pairs(mine) do fresh[id] = value end
    for id, value in pairs(mine_changed) do changed[id] = value end
    for id, value in pairs(mine_early) do early[id] = value end
  end
end

local key = slots[ring.slot + 1]
local words = {}
for id, value in pairs(fresh) do
  words[#words + 1] = id
  words[#words + 1] = cmsgpack.pack(value)
end
for i = 1, #words, 2 * CHUNK do
  redis.call('HSET', key, unpack(words, i, math.min(i + 2 * CHUNK - 1, #words)))
end
for id, value in pairs(changed) do
  redis.call('HSET', slots[value[2] + 1], id, cmsgpack.pack(value[1]))
end
for _, one in ipairs(mended) do
  forget_unreadable(meta, one[1])
  if one[3] then -- a damaged early label became a prediction that waits
    claim(meta, ring, one[2])
    redis.call('HINCRBY', meta, 'waiting:' .. one[2], 1)
    redis.call('HINCRBY', meta, 'waiting', 1)
  end
end
if added > 0 then
  enter(meta, ring, now_ms)
  redis.call('HINCRBY', meta, 'waiting:' .. ring.slot, added)
  redis.call('HINCRBY', meta, 'waiting', added)
end
if next(early) then
  local events, joined, marked = {}, {}, {}
  local order = {}
  for id in pairs(early) do order[#order + 1] = id end
  table.sort(order)
  for i, id in ipairs(order) do
    local value = early[id]
    local digest = value[3][1] .. string.sub(value[1], 2, 15)
    events[i] = string.sub(value[1], 16)
    joined[i] = joined_text(i - 1, value[3], true)
    marked[#marked + 1] = id
    marked[#marked + 1] = digest
    redis.call('HSET', slots[value[2] + 1], id, 'L' .. digest .. request)
    claim(meta, ring, value[2])
  end
  local payload = '[' .. table.concat(events, ',') .. ']'
  append_entry(meta, log, redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'count'),
    'early:' .. uid, payload, redis.sha1hex(payload), {}, #events,
    '{' .. table.concat(joined, ',') .. '}')
  mark_seen(meta, {KEYS[4], KEYS[5]}, redis.call('HMGET', meta, 'generation', 'generation_start',
    'generation_ids', 'seen_ms', 'seen_ids'), marked, now_ms)
  redis.call('HINCRBY', meta, 'labels_joined', #events)
end
local predicted = added
for _ in pairs(early) do predicted = predicted + 1 end
if predicted > 0 then redis.call('HINCRBY', meta, 'predicted', predicted) end
return {'ok', answers}
