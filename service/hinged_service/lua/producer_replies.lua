-- Shared by the scripts that append: the last batch of each producer, and its answer.

local MAX_PRODUCERS = 1024

-- A producer's last batch and its answer, `nil` if there is none or it is damaged.
local function batch_in(record)
  if not record then return nil end
  local sound, r = pcall(cmsgpack.unpack, record)
  if sound and type(r) == 'table' and type(r[1]) == 'number' and type(r[2]) == 'string'
    and type(r[3]) == 'string' and type(r[4]) == 'string' and type(r[5]) == 'table' then
    return r
  end
end

-- Note a producer's batch; the oldest producer goes when there are too many.
local function note_batch(producers, producer, known, record)
  if not known and redis.call('HLEN', producers) >= MAX_PRODUCERS then
    local oldest, oldest_ms
    local all = redis.call('HGETALL', producers)
    for i = 1, #all, 2 do
      local ms = tonumber((batch_in(all[i + 1]) or {})[6]) or 0 -- damaged ones go first
      if not oldest or ms < oldest_ms then oldest, oldest_ms = all[i], ms end
    end
    redis.call('HDEL', producers, oldest)
  end
  redis.call('HSET', producers, producer, cmsgpack.pack(record))
end
