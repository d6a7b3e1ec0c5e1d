-- Shared by the scripts that read a log from a position on.

-- The entries after that at `id` with `chain` until about `limit` bytes, as `catch_up` replies.
local function tail(meta, log, stored, m, id, chain, limit, fold)
  if not m[1] then error({err = 'STREAMLOST meta'}) end
  if redis.call('EXISTS', log) == 0 then error({err = 'STREAMLOST log'}) end
  if m[3] and m[3] ~= fold then return {'other', m[3]} end
  if not holds(log, m[1], m[2], id, chain) then return {'lost'} end
  local found, more, left_out, damaged = entries_after(meta, log, m[1], m[2], id, chain, limit)
  if not found then return {'lost'} end
  if damaged and #found == 0 then return {'damaged', damaged} end
  return {'ok', (words(stored)), damaged and 1 or more, found, left_out}
end
