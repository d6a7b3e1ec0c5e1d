#!lua
-- Remove the entries taken from a stream's inbox; return the next ones.
--
-- An offset is "entry id", or "entry id/n" in the n-th inbox after the first. The next one is
-- begun where the ids of this one come to an end: an outsider may write an entry of any id, after
-- which XADD goes on from there, up to the last possible id. It is begun too where the inbox was
-- deleted and ids before the offset are written again.
--
-- KEYS 1 inbox  2 offsets
-- ARGV 1 the inbox's name as a source
--      2 most entries, 3 and about most bytes to return
--      4 longest event to return; of a longer one only its length
--
-- Reply: offset, entries: [entry id, event or its length or false, id or false] each
--#include common

local AHEAD_MS = 24 * 3600 * 1000
local inbox, offsets, source = KEYS[1], KEYS[2], ARGV[1]
local most, limit, longest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local STEP = 16
local STREAM = 'STREAM' -- a word of XINFO, no key
local LAST_ID = '18446744073709551615-18446744073709551615'

local offset = redis.call('HGET', offsets, source) or ''
if redis.call('EXISTS', inbox) == 0 then return {offset, {}} end
local id, nth = string.match(offset, '^(%d+%-%d+)/?(%d*)$')
if offset ~= '' and not id then return {offset, {}} end -- damaged: the caller tells
id = id or '0-0'
local last = field_of(redis.call('XINFO', STREAM, inbox), 'last-generated-id')

-- The last of a field's values, as everywhere of a name that stands twice.
local function last_of(fields, name)
  for i = #fields - 1, 1, -2 do
    if fields[i] == name then return fields[i + 1] end
  end
end

local function begin_next()
  offset = '0-0/' .. string.format('%d', (tonumber(nth) or 0) + 1)
  id = '0-0'
  redis.call('HSET', offsets, source, offset)
end

if compare(last, id) < 0 then
  begin_next()
elseif offset ~= '' then
  redis.call('XTRIM', inbox, 'MINID', '=', id)
  redis.call('XDEL', inbox, id)
  if redis.call('XLEN', inbox) == 0 then
    local now_ms = redis.call('TIME')[1] * 1000
    if tonumber(string.match(last, '^%d+')) > now_ms + AHEAD_MS then
      redis.call('DEL', inbox)
      begin_next()
    end
    return {offset, {}}
  end
end

local found, bytes = {}, 0
while #found < most and bytes < limit and id ~= LAST_ID do
  local some = redis.call('XRANGE', inbox, '(' .. id, '+', 'COUNT', math.min(STEP, most - #found))
  if #some == 0 then break end
  for _, entry in ipairs(some) do
    if bytes >= limit then break end
    id = entry[1]
    local event, name = last_of(entry[2], 'event'), last_of(entry[2], 'id')
    if event and #event > longest then event = #event end
    if name and #name > longest then name = string.sub(name, 1, 5000) end
    bytes = bytes + #tostring(event or '') + #(name or '') + 64
    found[#found + 1] = {id, event or false, name or false}
  end
end
return {offset, found}
