-- Shared by the scripts that append a command: one entry, chained to the one before.

-- Append the command `payload`; the new id and chain are returned.
local function append_command(meta, log, from, payload, sha)
  local m = redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'count')
  local chain = redis.sha1hex(m[2] .. m[1] .. from .. sha .. '[]')
  local bytes = m[3] + #payload
  local id = redis.call('XADD', log, '*', 'command', payload, 'from', from, 'chain', chain,
    'bytes', bytes, 'count', m[4])
  redis.call('HSET', meta, 'last', id, 'chain', chain, 'bytes', bytes)
  return id, chain
end
