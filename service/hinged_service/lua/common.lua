-- Shared by the scripts that name it in an `--#include` line.

-- Compare two entry ids, "ms-seq": -1, 0 or 1.
local function compare(a, b)
  local ams, aseq = string.match(a, '^(%d+)-(%d+)$')
  local bms, bseq = string.match(b, '^(%d+)-(%d+)$')
  ams, aseq, bms, bseq = tonumber(ams), tonumber(aseq), tonumber(bms), tonumber(bseq)
  if ams ~= bms then return ams < bms and -1 or 1 end
  if aseq ~= bseq then return aseq < bseq and -1 or 1 end
  return 0
end

-- A follower's or a hold's value is "entry id, space, rest"; damaged, it reads as the oldest id.
local function words(text)
  local id, rest = string.match(text, '^(%d+%-%d+) (%S+)$')
  return id or '0-0', rest or ''
end

-- One field of a log entry, given as its flat field, value list.
local function field_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
end

-- Does the log hold the entry `id` with this very chain?
local function holds(log, last, last_chain, id, chain)
  if id == last then return chain == last_chain end
  local found = redis.call('XRANGE', log, id, id)
  return #found > 0 and field_of(found[1][2], 'chain') == chain
end

-- The entries after `id`, oldest first, until about `limit` bytes. Second result: are there more?
local function entries_after(log, last, id, limit)
  local found, bytes, step = {}, 0, 1
  if id == last then return found, 0 end
  while compare(id, last) < 0 do
    if bytes >= limit then return found, 1 end
    local some = redis.call('XRANGE', log, '(' .. id, '+', 'COUNT', step)
    if #some == 0 then break end
    local before = bytes
    for _, entry in ipairs(some) do
      found[#found + 1] = entry
      for _, part in ipairs(entry[2]) do bytes = bytes + #part end
    end
    id = some[#some][1]
    if bytes - before < 65536 and step < 16 then step = step * 2 else step = 1 end
  end
  return found, 0
end
