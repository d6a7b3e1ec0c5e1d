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

-- Most bytes of entries off the chain in a row; the one after them must follow the one before.
local OFF_CHAIN_BYTES = 4194304

-- Is this entry, by its chain, the next one after that at `id` with `chain`?
local function follows(fields, id, chain)
  local e = {}
  for i = 1, #fields, 2 do e[fields[i]] = fields[i + 1] end
  local payload = e.events or e.command
  if not (payload and e.from and e.chain and tonumber(e.bytes) and tonumber(e.count)) then
    return false
  end
  return e.chain == redis.sha1hex(chain .. id .. e.from .. redis.sha1hex(payload)
    .. (e.skip or '[]') .. (e.joined or ''))
end

-- An entry that a repair passed over, as one without content; nothing if it did not.
local function passed_over(meta, id)
  local found = redis.call('HGET', meta, 'void:' .. id)
  if not found then return nil end
  local chain, bytes, count = string.match(found, '^(%x+) (%d+) (%d+)$')
  return {id, {'chain', chain, 'bytes', bytes, 'count', count}}
end

-- The entries after that at `id` with `chain`, oldest first, until about `limit` bytes. An entry
-- whose chain does not follow from the one before is left out if a later one does.
-- Further results: are there more (1 or 0)? ids of the entries left out; id of the entry from which
-- on none follows, though the log goes on.
local function entries_after(meta, log, last, last_chain, id, chain, limit)
  local found, bytes, step = {}, 0, 1
  local left_out, off, off_bytes, at = {}, {}, 0, id
  while compare(at, last) < 0 and off_bytes < OFF_CHAIN_BYTES do
    if bytes >= limit then return found, 1, left_out end
    local some = redis.call('XRANGE', log, '(' .. at, last, 'COUNT', step)
    if #some == 0 then break end
    local before = bytes + off_bytes
    for _, entry in ipairs(some) do
      local size = 0
      for _, part in ipairs(entry[2]) do size = size + #part end
      local next_one = follows(entry[2], id, chain) and entry or passed_over(meta, entry[1])
      if next_one then
        found[#found + 1] = next_one
        bytes = bytes + size
        id, chain = next_one[1], field_of(next_one[2], 'chain')
        for _, one in ipairs(off) do left_out[#left_out + 1] = one end
        off, off_bytes = {}, 0
      else
        off[#off + 1] = entry[1]
        off_bytes = off_bytes + size
      end
    end
    at = some[#some][1]
    if bytes + off_bytes - before < 65536 and step < 16 then step = step * 2 else step = 1 end
  end
  if id == last and chain == last_chain then return found, 0, left_out end
  return found, 0, left_out, off[1] or last
end
