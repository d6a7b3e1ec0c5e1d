#!lua
-- Append one batch of labelled events to a stream's log, each event id at most once.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 producers  5 seen:0  6 seen:1  7 offsets  8 dead
--      9… the slots of the ring of waiting predictions, if ARGV 10 says so
--      last, for the source `inbox`: the inbox
-- ARGV 1 model uid
--      2 producer, 3 sequence: name this immutable batch
--      4 position id, 5 position chain: where the caller's replica stands
--      6 payload: JSON array of events, as accepted
--      7 sha1 of the payload
--      8 callers (msgpack): per caller [number of events, marks, false]; marks is a flat list of
--        (index in the caller's events, kind, event id, digest), or nil. Kind 0: an event;
--        digest: 14 hex digits of its features, 14 of its label. Kind 1: the label of a waiting
--        prediction; digest: 14 hex digits, then its JSON. Behind a label's digits may stand 14
--        more: of the same label written otherwise, 1 for true. [n, marks, true] stands for n
--        callers of one event each
--      9 byte limit of the entries in the reply
--      10 whether the ring's keys are there: 1 or 0
--      11 fold tag of the caller
--      12 a source's name, 13 the offset where the batch begins, 14 that where the next one does:
--         instead of producer and sequence, which then only tell the entry's origin
--      15 for a source (msgpack): [offset per event, dead letters: [offset, reason, record] each,
--         bytes of each event's JSON in the payload, none at all if no event can be refused, the
--         door under which what it did not bring is counted for the model, '' for none]
--      16 if predictions of the source are written: what to note with the batch until they are
--
-- Replies: gone | stale | lost
--        | other, fold tag: workers of another tag fold the model
--        | damaged, id: from that entry on none follows that was not read before
--        | ring: predictions wait on this stream; send the batch again with the ring's keys
--        | moved, offset: the source's batches have come so far; '' for not at all
--        | replay, id, chain, skip, refused
--        | ok, id, chain, skip, refused, appended (0/1), snapshot position, more (0/1), entries,
--          joined, early, left out
--   skip: JSON list of indices in the payload that were not taken; refused: flat list of
--   (caller, index in its events, a Refusal) of callers refused whole; joined: JSON of the
--   predictions that the events of the own entry were joined to, by index, or ''; early: indices
--   of labels that wait for their prediction; left out: ids of entries off the chain.
--#include common
--#include producer_replies
--#include append_entry
--#include dedup_window
--#include prediction_ring

local meta, log, followers, producers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uid, producer, sequence = ARGV[1], ARGV[2], tonumber(ARGV[3])
local position, chain, payload = ARGV[4], ARGV[5], ARGV[6]
local DEAD_LETTERS = 10000
local KEPT_BYTES = 8192
local Refusal = {ID_TAKEN = 0, NO_PREDICTION = 1, WAITED_TOO_LONG = 2, TOO_MANY_WAIT = 3,
  DAMAGED = 4}
local REASONS = { -- of dead letters, in full and as they are counted
  [Refusal.ID_TAKEN] = {'id names another event already', 'conflict'},
  [Refusal.NO_PREDICTION] = {'id names no prediction that waits for its label', 'unknown'},
  [Refusal.WAITED_TOO_LONG] = {'id names a prediction that waited too long', 'expired'},
  [Refusal.TOO_MANY_WAIT] = {'too many predictions and early labels wait', 'full'},
  [Refusal.DAMAGED] = {'id names a prediction that is damaged', 'conflict'},
}

local stored = redis.call('HGET', followers, uid)
if not stored then return {'gone'} end

local source = ARGV[12]
local record = not source and redis.call('HGET', producers, producer)
local r = batch_in(record)
if r then
  if r[1] == sequence then return {'replay', r[2], r[3], r[4], r[5]} end
  if r[1] > sequence then return {'stale'} end
end
if source then
  local offset = redis.call('HGET', KEYS[7], source) or ''
  if offset ~= ARGV[13] then return {'moved', offset} end
  if source == 'inbox' then -- set back or created again, it may lack the entries that were read
    local at = string.match(ARGV[14], '^%d+%-%d+')
    if #redis.call('XRANGE', KEYS[#KEYS], at, at) == 0 then return {'moved', offset} end
  end
  -- predictions of the batch before are not written yet: nothing is taken
  if ARGV[16] and redis.call('HEXISTS', meta, 'unpredicted:' .. source) == 1 then
    return {'moved', offset}
  end
end

local m = redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'generation', 'generation_start',
  'generation_ids', 'seen_ms', 'seen_ids', 'count', 'predicted', 'fold:' .. uid, 'damaged:' .. uid)
local last, last_chain = m[1], m[2]
if not last then error({err = 'STREAMLOST meta'}) end
if m[11] and m[11] ~= ARGV[11] then return {'other', m[11]} end
if not holds(log, last, last_chain, position, chain) then return {'lost'} end
-- Another worker could not read past that entry, and no snapshot is past it.
if m[12] and compare((words(stored)), m[12]) < 0 then return {'damaged', m[12]} end

local generation = tonumber(m[4])
local current, previous = KEYS[5 + generation], KEYS[6 - generation]
local has_previous -- whether there are older ids; asked as soon as one is looked up

-- The digests known for the ids marks[from], marks[from + 4], … of one chunk.
local function known(ids)
  local found = redis.call('HMGET', current, unpack(ids))
  if has_previous == nil then has_previous = redis.call('EXISTS', previous) == 1 end
  if has_previous then
    local older = redis.call('HMGET', previous, unpack(ids))
    for i = 1, #ids do found[i] = found[i] or older[i] end
  end
  return found
end

local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local ring, slots
if ARGV[10] == '1' then
  slots = {}
  for i = 1, SLOTS do slots[i] = KEYS[8 + i] end
  ring = ring_of(meta)
  turn(meta, slots, ring, now_ms)
elseif m[10] then
  return {'ring'}
end

-- Take the digits of a label written otherwise, if there are any, out of a digest.
local function split(kind, digest)
  local at = kind == 1 and 15 or 29
  local next = string.byte(digest, at)
  if not next or next == 123 then return digest end -- 123 is '{'
  return string.sub(digest, 1, at - 1) .. string.sub(digest, at + 14), string.sub(digest, at, at + 13)
end

-- Decide what to do with an event whose id was seen or waits: skip it, refuse it (a Refusal), join
-- it to a waiting prediction, or keep it as a label that came before its prediction.
-- Results: skip, refusal, prediction, keep.
local function judge(kind, digest, other, before, waiting)
  local label = kind == 1 and string.sub(digest, 1, 14) or string.sub(digest, 15)
  -- The ring outlives the dedup window: a labelled id in it counts as seen.
  if not before and waiting and string.sub(waiting[1], 1, 1) == 'L' then
    before = string.sub(waiting[1], 2, 29)
    waiting = nil
  end
  if before then
    -- A label alone knows no features: it repeats an event if their labels agree.
    local labelled = string.sub(before, 15)
    local same = kind == 1 or string.sub(before, 1, 14) == string.sub(digest, 1, 14)
    if same and (labelled == label or labelled == other) then return true end
    return false, Refusal.ID_TAKEN
  end
  if waiting and string.sub(waiting[1], 1, 1) == 'E' then
    -- The same label again is skipped; a whole event takes the place of its early label.
    local labelled = string.sub(waiting[1], 2, 15)
    if labelled ~= label and labelled ~= other then return false, Refusal.ID_TAKEN end
    if kind == 1 and waiting[2] == oldest(ring) then return false, Refusal.WAITED_TOO_LONG end
    return kind == 1
  end
  local prediction = waiting and prediction_in(waiting[1])
  if kind == 1 then
    if not waiting then
      if ring and ring.early then return false, nil, nil, true end
      return false, Refusal.NO_PREDICTION
    end
    if waiting[2] == oldest(ring) then return false, Refusal.WAITED_TOO_LONG end
    if not prediction then return false, Refusal.DAMAGED end
  elseif prediction then -- damaged, it is as none: the event counts by its own features
    if prediction[1] ~= string.sub(digest, 1, 14) then return false, Refusal.ID_TAKEN end
    -- Expired: the event counts, but is not joined to its prediction.
    if waiting[2] == oldest(ring) then return false, nil, nil end
  end
  return false, nil, prediction
end

-- Collected first, written at the end: a script that fails half-way keeps what it has written.
local accepted, marked = {}, {}
local skip, refused = {}, {}
local joined, settled, early, early_labels = {}, {}, {}, {}
local unreadable = {}
local too_late, unknown, repeated, conflicting = 0, 0, 0, 0
local space = ring and ring.early and ring.free or 0

-- Take the events of one caller, of which the first is number `first` of the payload. If one of
-- them cannot be taken, none is: return its index, why, whether it is a label. Until then all
-- stays in `mine…`, so that a refused caller uses up no id that another one of the batch shares.
local function take(first, marks)
  local mine, mine_marked, mine_skip = {}, {}, {}
  local mine_joined, mine_settled, mine_early = {}, {}, {}
  local mine_repeated = 0
  local from = 1
  while from <= #marks do
    local to = math.min(from + 4 * CHUNK, #marks + 1)
    local ids = {}
    for i = from, to - 1, 4 do ids[#ids + 1] = marks[i + 2] end
    local found = known(ids)
    local waiting = ring and waiting_of(slots, ring, ids) or {}
    for k, id in ipairs(ids) do
      local at = from + 4 * (k - 1)
      local index, kind = marks[at], marks[at + 1]
      local digest, other = split(kind, marks[at + 3])
      local before = found[k] or accepted[id] or mine[id]
      local drop, reason, prediction, keep = judge(kind, digest, other, before, waiting[k])
      if keep and #early + #mine_early >= space then reason = Refusal.TOO_MANY_WAIT end
      if reason then
        if reason == Refusal.DAMAGED then unreadable[#unreadable + 1] = id end
        return index, reason, kind == 1
      elseif drop then
        mine_repeated = mine_repeated + kind
        mine_skip[#mine_skip + 1] = first + index
      elseif keep then
        -- so that the same label again in this batch is skipped
        mine[id] = string.rep('0', 14) .. string.sub(digest, 1, 14)
        mine_early[#mine_early + 1] = {id, digest, first + index}
        mine_skip[#mine_skip + 1] = first + index
      else
        if prediction then
          -- remembered with its features: the whole event sent later is the same one
          if kind == 1 then digest = prediction[1] .. string.sub(digest, 1, 14) end
          mine_joined[#mine_joined + 1] = {first + index, prediction, kind == 1}
        end
        if waiting[k] then
          local label = string.sub(waiting[k][1], 1, 1) == 'E'
          mine_settled[#mine_settled + 1] = {waiting[k][2], id, digest,
            prediction or waiting[k][2] ~= oldest(ring), label, not prediction and not label}
        end
        mine[id] = digest
        mine_marked[#mine_marked + 1] = id
        mine_marked[#mine_marked + 1] = digest
      end
    end
    from = to
  end
  for id, digest in pairs(mine) do accepted[id] = digest end
  for _, word in ipairs(mine_marked) do marked[#marked + 1] = word end
  for _, index in ipairs(mine_skip) do skip[#skip + 1] = index end
  for _, part in ipairs(mine_joined) do joined[#joined + 1] = part end
  for _, part in ipairs(mine_settled) do settled[#settled + 1] = part end
  for _, part in ipairs(mine_early) do early[#early + 1] = part end
  repeated = repeated + mine_repeated
end

-- As much of a text as is kept of a dead record, in whole characters.
local function beginning(text)
  local last = math.min(#text, KEPT_BYTES)
  while last < #text and string.byte(text, last + 1) >= 0x80
    and string.byte(text, last + 1) < 0xC0 do last = last - 1 end
  return string.sub(text, 1, last)
end

-- Refuse a caller whole.
local function refuse(number, first, count, index, why, of_label)
  refused[#refused + 1] = number
  refused[#refused + 1] = index
  refused[#refused + 1] = why
  if why == Refusal.ID_TAKEN and of_label then conflicting = conflicting + 1 end
  if why == Refusal.NO_PREDICTION then unknown = unknown + 1 end
  if why == Refusal.WAITED_TOO_LONG then too_late = too_late + 1 end
  for at = first, first + count - 1 do skip[#skip + 1] = at end
end

local first, number = 0, 0
for _, share in ipairs(cmsgpack.unpack(ARGV[8])) do
  local count, marks, apart = share[1], share[2], share[3]
  local conflict, why, of_label
  if marks then conflict, why, of_label = take(first, marks) end
  if conflict and not apart then
    refuse(number, first, count, conflict, why, of_label)
  elseif conflict then -- rare; all at once is the same as one by one if all can be taken
    for i = 1, #marks, 4 do
      local at = marks[i]
      local found, why, of_label = take(first + at, {0, marks[i + 1], marks[i + 2], marks[i + 3]})
      if found then refuse(number + at, first + at, 1, found, why, of_label) end
    end
  end
  number = number + (apart and count or 1)
  first = first + count
end

-- Read before the own entry is written: the caller folds these first, then its own.
local skip_text = '[' .. table.concat(skip, ',') .. ']'
local between, more, left_out, damaged =
  entries_after(meta, log, last, last_chain, position, chain, tonumber(ARGV[9]))
if not between then return {'lost'} end
if damaged then return {'damaged', damaged} end

local id, appended, joined_json = last, 0, ''
chain = last_chain
if #joined > 0 then
  local parts = {}
  for i, part in ipairs(joined) do parts[i] = joined_text(part[1], part[2], part[3]) end
  joined_json = '{' .. table.concat(parts, ',') .. '}'
end
if #skip < first then -- else nothing of the batch counts, and the log stays as it is
  appended = 1
  id, chain = append_entry(meta, log, {last, last_chain, m[3], m[9]}, producer .. ':' .. ARGV[3],
    payload, ARGV[7], skip, first, joined_json)
end
if #marked > 0 then
  mark_seen(meta, {KEYS[5], KEYS[6]}, {m[4], m[5], m[6], m[7], m[8]}, marked, now_ms)
end
for _, part in ipairs(settled) do
  settle(meta, slots, ring, part)
  if part[6] then forget_unreadable(meta, part[2]) end
end
for _, damaged_id in ipairs(unreadable) do note_unreadable(meta, damaged_id) end
for i, part in ipairs(early) do
  early_labels[i] = part[3]
  redis.call('HSET', slots[ring.slot + 1], part[1], 'E' .. part[2])
end
if #early > 0 then
  enter(meta, ring, now_ms)
  redis.call('HINCRBY', meta, 'predicted', 0) -- from now on nothing is appended without the ring
  redis.call('HINCRBY', meta, 'early:' .. ring.slot, #early)
  redis.call('HINCRBY', meta, 'early_waiting', #early)
end
local counts = {labels_joined = #joined, labels_unknown = unknown, labels_late = too_late,
  labels_repeated = repeated, labels_conflicting = conflicting}
for name, count in pairs(counts) do
  if count > 0 then redis.call('HINCRBY', meta, name, count) end
end

if source then
  redis.call('HSET', KEYS[7], source, ARGV[14])
  if ARGV[16] and appended == 1 then
    redis.call('HSET', meta, 'unpredicted:' .. source,
      id .. ' ' .. chain .. ' ' .. uid .. ' ' .. ARGV[16])
  end
  local places, letters, sizes, door = unpack(cmsgpack.unpack(ARGV[15]))
  local counts = {invalid = #letters, duplicates = #skip - #early - #refused / 3}
  local at, passed = 2, 0 -- behind the bracket
  for i = 1, #refused, 3 do -- each event is a caller by itself
    for k = passed + 1, refused[i] do at = at + (sizes[k] or 0) + 1 end
    passed = refused[i]
    local text = string.sub(payload, at, at + (sizes[passed + 1] or 0) - 1)
    local reason = REASONS[refused[i + 2]]
    letters[#letters + 1] = {places[passed + 1] or '', reason[1], beginning(text)}
    counts[reason[2]] = (counts[reason[2]] or 0) + 1
  end
  for _, letter in ipairs(letters) do
    redis.call('XADD', KEYS[8], 'MAXLEN', '~', DEAD_LETTERS, '*', 'source', source,
      'offset', letter[1], 'reason', letter[2], 'record', letter[3])
  end
  if #letters > 0 then redis.call('HINCRBY', meta, 'dead', #letters) end
  for what, count in pairs(door == '' and {} or counts) do
    if count > 0 then
      redis.call('HINCRBY', meta, 'door:' .. uid .. ':' .. door .. ':' .. what, count)
    end
  end
else -- the answer is kept: sent again, the batch gets this one, not the one of a duplicate
  note_batch(producers, producer, record, {sequence, id, chain, skip_text, refused, now_ms})
end

-- Read again after it was written, for the server to tell this connection of the next change.
redis.call('HGET', meta, 'last')
return {'ok', id, chain, skip_text, refused, appended, (words(stored)), more, between, joined_json,
  early_labels, left_out}
