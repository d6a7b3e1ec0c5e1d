-- Shared by the scripts that append a command: one entry, chained to the one before.

-- Append the command `payload`; the new id and chain are returned.
local function append_command(meta, log, from, payload, sha)
  local m = redis.call('HMGET', meta, 'last', 'chain', 'bytes', 'count')
  if not m[1] then error({err = 'STREAMLOST meta'}) end
  local chain = redis.sha1hex(m[2] .. m[1] .. from .. sha .. '[]')
  local bytes = m[3] + #payload
  local id = redis.call('XADD', log, 'NOMKSTREAM', '*', 'command', payload, 'from', from, 'chain', chain,
    'bytes', bytes, 'count', m[4])
  if not id then error({err = 'STREAMLOST log'}) end -- before the first write
  redis.call('HSET', meta, 'last', id, 'chain', chain, 'bytes', bytes)
  return id, chain
end
