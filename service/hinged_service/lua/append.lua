#!lua
-- Append one batch of labelled events to a stream's log, each event id at most once.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 producers  5 seen:0  6 seen:1  7 offsets, 8 dead: for a source
-- ARGV 1 model uid
--      2 producer, 3 sequence: name this immutable batch
--      4 position id, 5 position chain: where the caller's replica stands
--      6 payload: JSON array of events, as accepted
--      7 sha1 of the payload
--      8 callers (msgpack): per caller [number of events, marks]; marks is a flat list of
--        (index in the caller's events, kind, event id, digest), or absent
--      9 byte limit of the entries in the reply
--      10 a source's name, 11 the offset where the batch begins, 12 that where the next one does:
--         instead of producer and sequence, which then only tell the entry's origin
--      13 for a source (msgpack): [offset per event, dead letters: [offset, reason, record] each]
--
-- Replies: gone | stale | lost
--        | moved, offset: the source's batches have come so far; '' for not at all
--        | replay, id, chain, skip, refused
--        | ok, id, chain, skip, refused, appended (0/1), snapshot position, more (0/1), entries
--   skip: JSON list of indices in the payload that were not taken; refused: flat list of
--   (caller, index in its events) of event ids that came before with other content.
--#include common
--#include producers

local meta, log, followers, producers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uid, producer, sequence = ARGV[1], ARGV[2], tonumber(ARGV[3])
local position, chain, payload = ARGV[4], ARGV[5], ARGV[6]
local CHUNK = 1000
local DEAD_LETTERS = 10000

local stored = redis.call('HGET', followers, uid)
if not stored then return {'gone'} end

local source = ARGV[10]
local record = not source and redis.call('HGET', producers, producer)
if record then
  local r = cmsgpack.unpack(record)
  if r[1] == sequence then return {'replay', r[2], r[3], r[4], r[5]} end
  if r[1] > sequence then return {'stale'} end
end
if source then
  local offset = redis.call('HGET', KEYS[7], source) or ''
  if offset ~= ARGV[11] then return {'moved', offset} end
end

local m = redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'generation', 'generation_start',
  'generation_ids', 'seen_ms', 'seen_ids', 'count')
local last, last_chain = m[1], m[2]
if not holds(log, last, last_chain, position, chain) then return {'lost'} end

local generation = tonumber(m[4])
local current, previous = KEYS[5 + generation], KEYS[6 - generation]
local has_previous = redis.call('EXISTS', previous) == 1

-- The digests known for the ids marks[from], marks[from + 4], … of one chunk.
local function known(ids)
  local found = redis.call('HMGET', current, unpack(ids))
  if has_previous then
    local older = redis.call('HMGET', previous, unpack(ids))
    for i = 1, #ids do found[i] = found[i] or older[i] end
  end
  return found
end

local accepted, marked = {}, {}
local skip, refused = {}, {}
local first = 0
for number, caller in ipairs(cmsgpack.unpack(ARGV[8])) do
  local count, marks = caller[1], caller[2]
  if marks then
    local mine, mine_marked, mine_skip, conflict = {}, {}, {}, nil
    local from = 1
    while from <= #marks and not conflict do
      local to = math.min(from + 4 * CHUNK, #marks + 1)
      local ids = {}
      for i = from, to - 1, 4 do ids[#ids + 1] = marks[i + 2] end
      local found = known(ids)
      for k, id in ipairs(ids) do
        local at = from + 4 * (k - 1)
        local index, digest = marks[at], marks[at + 3]
        local before = found[k] or accepted[id] or mine[id]
        if not before then
          mine[id] = digest
          mine_marked[#mine_marked + 1] = id
          mine_marked[#mine_marked + 1] = digest
        elseif before == digest then
          mine_skip[#mine_skip + 1] = first + index
        else
          conflict = index
          break
        end
      end
      from = to
    end
    if conflict then
      refused[#refused + 1] = number - 1
      refused[#refused + 1] = conflict
      for index = first, first + count - 1 do skip[#skip + 1] = index end
    else
      for id, digest in pairs(mine) do accepted[id] = digest end
      for _, word in ipairs(mine_marked) do marked[#marked + 1] = word end
      for _, index in ipairs(mine_skip) do skip[#skip + 1] = index end
    end
  end
  first = first + count
end

local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local skip_text = '[' .. table.concat(skip, ',') .. ']'
local between, more = entries_after(log, last, position, tonumber(ARGV[9]))

local id, appended = last, 0
chain = last_chain
if #skip < first then
  appended = 1
  local from = producer .. ':' .. ARGV[3]
  chain = redis.sha1hex(last_chain .. last .. from .. ARGV[7] .. skip_text)
  local bytes = m[3] + #payload
  local count = m[9] + first - #skip
  id = redis.call('XADD', log, '*', 'events', payload, 'skip', skip_text, 'from', from,
    'chain', chain, 'bytes', bytes, 'count', count)
  redis.call('HSET', meta, 'last', id, 'chain', chain, 'bytes', bytes, 'count', count)
end

if #marked > 0 then
  for i = 1, #marked, 2 * CHUNK do
    redis.call('HSET', current, unpack(marked, i, math.min(i + 2 * CHUNK - 1, #marked)))
  end
  local ids = m[6] + #marked / 2
  if ids >= tonumber(m[8]) or now_ms - m[5] >= tonumber(m[7]) then
    redis.call('UNLINK', previous)
    redis.call('HSET', meta, 'generation', 1 - generation, 'generation_start', now_ms,
      'generation_ids', 0)
  else
    redis.call('HSET', meta, 'generation_ids', ids)
  end
end

if source then
  redis.call('HSET', KEYS[7], source, ARGV[12])
  local places, letters = unpack(cmsgpack.unpack(ARGV[13]))
  for i = 1, #refused, 2 do -- each event is a caller by itself
    letters[#letters + 1] = {places[refused[i] + 1] or '', 'id names another event already', ''}
  end
  for _, letter in ipairs(letters) do
    redis.call('XADD', KEYS[8], 'MAXLEN', '~', DEAD_LETTERS, '*', 'source', source,
      'offset', letter[1], 'reason', letter[2], 'record', letter[3])
  end
  if #letters > 0 then redis.call('HINCRBY', meta, 'dead', #letters) end
else
  note_batch(producers, producer, record, {sequence, id, chain, skip_text, refused, now_ms})
end

return {'ok', id, chain, skip_text, refused, appended, (words(stored)), more, between}
