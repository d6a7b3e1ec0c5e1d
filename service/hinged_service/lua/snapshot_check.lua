-- Shared by the two snapshot scripts: may (new, new_chain) become the model's snapshot?
-- Returns nothing if it may, else the script's reply; second result: the stored position.
-- `again`: also where the stored one is; a whole snapshot may replace a damaged one in its place.
-- Before the model's last upgrade nothing may be stored any more: its entry names the snapshot at
-- which it began, and a worker that comes to it must find that very snapshot or a later one.

local MAX_HOLD_MS = 60000 -- a longer one was set before the server's clock went back

local function refusal(meta, log, followers, uid, new, new_chain, fold, again)
  local stored = redis.call('HGET', followers, uid)
  if not stored then return {'gone'} end
  stored = words(stored)
  local m = redis.call('HMGET', meta, 'last', 'chain', 'hold:' .. uid, 'fold:' .. uid,
    'barrier:' .. uid)
  if not m[1] then error({err = 'STREAMLOST meta'}) end
  if m[4] and m[4] ~= fold then return {'other', m[4]} end
  if not holds(log, m[1], m[2], new, new_chain) then return {'lost'} end
  local order = compare(stored, new)
  if order > 0 or order == 0 and not again then return {'stored', stored} end
  if m[5] and compare(new, (words(m[5]))) < 0 then return {'later'} end
  if m[3] then
    local held, till = words(m[3])
    local now = redis.call('TIME')
    local left = (tonumber(till) or 0) - now[1] * 1000 - now[2] / 1000
    if held == stored and left > 0 and left <= MAX_HOLD_MS then return {'later'} end
  end
  return nil, stored
end

-- Write the state, move the follower, and trim what neither a follower nor retention wants.
local function commit(meta, log, followers, state, uid, new, new_chain, fields, wanted)
  redis.call('DEL', state)
  redis.call('HSET', state, unpack(cmsgpack.unpack(fields)))
  redis.call('HSET', followers, uid, new .. ' ' .. new_chain)
  redis.call('HDEL', meta, 'hold:' .. uid, 'aside:' .. uid)
  local all = redis.call('HGETALL', followers)
  for i = 1, #all, 2 do
    local position = words(all[i + 1])
    if compare(position, wanted) < 0 and redis.call('HEXISTS', meta, 'aside:' .. all[i]) == 0 then
      wanted = position
    end
  end
  local trimmed = redis.call('XTRIM', log, 'MINID', wanted)
  local keep = redis.call('HMGET', meta, 'keep_events', 'keep_bytes')
  return {'ok', trimmed, keep[1] or '', keep[2] or ''}
end
