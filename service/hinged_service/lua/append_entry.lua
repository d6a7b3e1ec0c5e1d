-- Shared by the scripts that append events: one entry, chained to the one before.

-- Append `payload`, a JSON array of `total` events of which those in `skip` do not count.
-- `m` is {last id, last chain, bytes, count} of the log; the new id and chain are returned.
local function append_entry(meta, log, m, from, payload, sha, skip, total, joined)
  local skip_text = '[' .. table.concat(skip, ',') .. ']'
  local chain = redis.sha1hex(m[2] .. m[1] .. from .. sha .. skip_text .. joined)
  local bytes, count = m[3] + #payload + #joined, m[4] + total - #skip
  local id
  if joined == '' then
    id = redis.call('XADD', log, 'NOMKSTREAM', '*', 'events', payload, 'skip', skip_text, 'from', from,
      'chain', chain, 'bytes', bytes, 'count', count)
  else
    id = redis.call('XADD', log, 'NOMKSTREAM', '*', 'events', payload, 'skip', skip_text, 'from', from,
      'chain', chain, 'bytes', bytes, 'count', count, 'joined', joined)
  end
  if not id then error({err = 'STREAMLOST log'}) end -- before the first write
  redis.call('HSET', meta, 'last', id, 'chain', chain, 'bytes', bytes, 'count', count)
  return id, chain
end
