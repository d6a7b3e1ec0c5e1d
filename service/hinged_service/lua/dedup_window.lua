-- Shared by the scripts that mark event ids: two generations of ids, the older one forgotten whole.

local CHUNK = 1000

-- Note ids as seen (a flat list of id, digest) and begin a new generation when this one is full.
-- `s` is {generation, its start in ms, its number of ids, ms and ids that it lasts}.
local function mark_seen(meta, keys, s, marked, now_ms)
  local generation = tonumber(s[1])
  local current, previous = keys[1 + generation], keys[2 - generation]
  for i = 1, #marked, 2 * CHUNK do
    redis.call('HSET', current, unpack(marked, i, math.min(i + 2 * CHUNK - 1, #marked)))
  end
  local ids = s[3] + #marked / 2
  if ids >= tonumber(s[5]) or now_ms - s[2] >= tonumber(s[4]) then
    redis.call('UNLINK', previous)
    redis.call('HSET', meta, 'generation', 1 - generation, 'generation_start', now_ms,
      'generation_ids', 0)
  else
    redis.call('HSET', meta, 'generation_ids', ids)
  end
end
