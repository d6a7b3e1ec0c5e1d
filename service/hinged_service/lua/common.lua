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

-- How many entries back one is looked for from which an entry off the chain follows.
local LOOK_BACK = 16

-- The chain that an entry of these fields has after that at `id` with `chain`, as a function of
-- both, and the chain that it has; nothing if it is no entry of a log.
local function links(fields)
  local e = {}
  for i = 1, #fields, 2 do e[fields[i]] = fields[i + 1] end
  local payload = e.events or e.command
  if not (payload and e.from and e.chain and tonumber(e.bytes) and tonumber(e.count)) then
    return nil
  end
  local rest = e.from .. redis.sha1hex(payload) .. (e.skip or '[]') .. (e.joined or '')
  return function(id, chain) return redis.sha1hex(chain .. id .. rest) end, e.chain
end

-- Is this entry, by its chain, the next one after that at `id` with `chain`?
local function follows(fields, id, chain)
  local after, its = links(fields)
  return after ~= nil and after(id, chain) == its
end

-- An entry that a repair passed over, as one without content; nothing if it did not.
local function passed_over(meta, id)
  local found = redis.call('HGET', meta, 'void:' .. id)
  if not found then return nil end
  local chain, bytes, count = string.match(found, '^(%x+) (%d+) (%d+)$')
  return {id, {'chain', chain, 'bytes', bytes, 'count', count}}
end

-- The place among `found`, or 0 for the entry at `id` with `chain` before them, from which an
-- entry follows; -1 if it follows from the one before that; nothing if from none of the last ones.
local function parent_of(log, entry, found, id, chain)
  local after, its = links(entry[2])
  if not after then return nil end
  for k = #found - 1, math.max(1, #found - LOOK_BACK), -1 do
    if after(found[k][1], field_of(found[k][2], 'chain')) == its then return k end
  end
  if #found > 0 and #found <= LOOK_BACK and after(id, chain) == its then return 0 end
  if #found == 0 then
    local before = redis.call('XREVRANGE', log, '(' .. id, '-', 'COUNT', 1)[1]
    local its_chain = before and field_of(before[2], 'chain')
    if its_chain and after(before[1], its_chain) == its then return -1 end
  end
end

-- The entries after that at `id` with `chain`, oldest first, until about `limit` bytes. An entry
-- whose chain does not follow from the one before is left out if a later one does.
--
-- Two entries may follow from the same one: an append that a server had dropped comes back after
-- its second start, before the one that took its place. Nothing follows from it, so the other one
-- is of the log; an answer ends with no entry from which none was seen to follow.
--
-- Results: the entries, nothing if that at `id` is such an append itself; are there more (1 or 0)?
-- ids of the entries left out; id of the entry from which on none follows, though the log goes on.
local function entries_after(meta, log, last, last_chain, id, chain, limit)
  local found, bytes, step = {}, 0, 1
  local left_out, off, forks, off_bytes, at = {}, {}, {}, 0, id
  local first, first_chain = id, chain

  local function leave_out(ids)
    for _, one in ipairs(ids) do left_out[#left_out + 1] = one end
  end

  local function take(entry)
    found[#found + 1] = entry
    id, chain = entry[1], field_of(entry[2], 'chain')
    leave_out(off)
    off, forks, off_bytes = {}, {}, 0
  end

  -- Go on from an entry that follows from an earlier one; leave out what came between.
  local function branch(fork)
    for k = #found, fork.parent + 1, -1 do leave_out({table.remove(found)[1]}) end
    local others = {}
    for _, one in ipairs(off) do
      if one ~= fork.entry[1] then others[#others + 1] = one end
    end
    off = others
    take(fork.entry)
  end

  while compare(at, last) < 0 and off_bytes < OFF_CHAIN_BYTES do
    local full = bytes >= limit
    local some = redis.call('XRANGE', log, '(' .. at, last, 'COUNT', step)
    if #some == 0 then break end
    local before = bytes + off_bytes
    for _, entry in ipairs(some) do
      local size = 0
      for _, part in ipairs(entry[2]) do size = size + #part end
      local next_one = follows(entry[2], id, chain) and entry or passed_over(meta, entry[1])
      for k = #forks, 1, -1 do
        local fork = forks[k]
        if not next_one and follows(entry[2], fork.entry[1], field_of(fork.entry[2], 'chain')) then
          if fork.parent < 0 then return nil end
          branch(fork)
          next_one = entry
        end
      end
      if next_one then
        if full then return found, 1, left_out end
        take(next_one)
        bytes = bytes + size
      else
        local parent = parent_of(log, entry, found, first, first_chain)
        if parent then forks[#forks + 1] = {parent = parent, entry = entry} end
        off[#off + 1] = entry[1]
        off_bytes = off_bytes + size
      end
    end
    at = some[#some][1]
    if bytes + off_bytes - before < 65536 and step < 16 then step = step * 2 else step = 1 end
  end
  for _, fork in ipairs(forks) do
    if fork.entry[1] == last and field_of(fork.entry[2], 'chain') == last_chain then
      if fork.parent < 0 then return nil end
      branch(fork)
    end
  end
  if id == last and chain == last_chain then return found, 0, left_out end
  return found, 0, left_out, off[1] or last
end
