-- Shared by the scripts that append: the last batch of each producer, and its answer.

local MAX_PRODUCERS = 1024

-- Note a producer's batch; the oldest producer goes when there are too many.
local function note_batch(producers, producer, known, record)
  if not known and redis.call('HLEN', producers) >= MAX_PRODUCERS then
    local oldest, oldest_ms
    local all = redis.call('HGETALL', producers)
    for i = 1, #all, 2 do
      local ms = cmsgpack.unpack(all[i + 1])[6]
      if not oldest or ms < oldest_ms then oldest, oldest_ms = all[i], ms end
    end
    redis.call('HDEL', producers, oldest)
  end
  redis.call('HSET', producers, producer, cmsgpack.pack(record))
end
