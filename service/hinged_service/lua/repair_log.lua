#!lua
-- Remove entries that do not follow from the one before, and pass over those from which a later
-- one follows though their content is damaged. Repeating it changes nothing.
--
-- KEYS 1 meta  2 log  3 followers
-- ARGV 1 model uid  2 position id, 3 position chain: where to go on
--
-- Replies: gone | lost (the log does not hold the position)
--        | ok, id, chain: how far it came; more (0/1), ids removed, ids passed over
--#include common

local meta, log, uid, id, chain = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local BYTES = 1048576
local LOOK_AHEAD = 16
local MOST = 64

if redis.call('HEXISTS', KEYS[3], uid) == 0 then return {'gone'} end
local m = redis.call('HMGET', meta, 'last', 'chain')
local last, last_chain = m[1], m[2]
if not holds(log, last, last_chain, id, chain) then return {'lost'} end

local found, more, left_out, damaged = entries_after(meta, log, last, last_chain, id, chain, BYTES)
if not found then return {'lost'} end
local removed, passed = {}, {}
for _, one in ipairs(left_out) do
  redis.call('XDEL', log, one)
  removed[#removed + 1] = one
end
local before = #found > 0 and found[#found][2]
if #found > 0 then
  id, chain = found[#found][1], field_of(found[#found][2], 'chain')
end
if not damaged then
  if more == 0 then
    for _, field in ipairs(redis.call('HKEYS', meta)) do
      if string.sub(field, 1, 8) == 'damaged:' then redis.call('HDEL', meta, field) end
      if string.sub(field, 1, 8) == 'foreign:' then
        redis.call('XDEL', log, string.sub(field, 9))
        redis.call('HDEL', meta, field)
        removed[#removed + 1] = string.sub(field, 9)
      end
    end
  end
  return {'ok', id, chain, more, removed, passed}
end

-- The first entry from which a later one follows is a damaged one of the log; the end of the log,
-- as meta has it, is one too. What lies before it is no part of the log.
before = before or redis.call('XRANGE', log, id, id)[1][2]
local some = redis.call('XRANGE', log, '(' .. id, last, 'COUNT', MOST)
local chosen
for i, one in ipairs(some) do
  local its = field_of(one[2], 'chain')
  if its and string.find(its, '^%x+$') then
    if one[1] == last and its == last_chain then chosen = i end
    for k = i + 1, math.min(#some, i + LOOK_AHEAD) do
      if follows(some[k][2], one[1], its) then chosen = chosen or i end
    end
  end
  if chosen then break end
end
for i = 1, (chosen or #some + 1) - 1 do
  redis.call('XDEL', log, some[i][1])
  redis.call('HDEL', meta, 'foreign:' .. some[i][1])
  removed[#removed + 1] = some[i][1]
end
local bytes, count = tonumber(field_of(before, 'bytes')), tonumber(field_of(before, 'count'))
if chosen then
  local entry = some[chosen]
  bytes = tonumber(field_of(entry[2], 'bytes')) or bytes
  count = tonumber(field_of(entry[2], 'count')) or count
  redis.call('HSET', meta, 'void:' .. entry[1], field_of(entry[2], 'chain') .. ' '
    .. string.format('%.0f', bytes) .. ' ' .. string.format('%.0f', count))
  passed[1] = entry[1]
elseif #some < MOST then -- nothing of the chain is left: the log ends here
  redis.call('HSET', meta, 'last', id, 'chain', chain, 'bytes', bytes, 'count', count)
end
return {'ok', id, chain, 1, removed, passed}
