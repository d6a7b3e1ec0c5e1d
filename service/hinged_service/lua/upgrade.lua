#!lua
-- Let workers of another fold tag go on from a model's stored snapshot, from here on.
-- The snapshot gets the new tag and the log an entry with its position, at once: a worker that
-- folds past that entry began at that snapshot. The events between the two are folded again.
-- Every check that can fail precedes the first write.
--
-- KEYS 1 meta  2 log  3 followers  4 state  5… one hash per vector
-- ARGV 1 model uid
--      2 where the snapshot was seen: the follower's value as it is  3 its fold tag, or ''
--      4 position id, 5 position chain: where the new tag goes on
--      6 fold tag of the caller, the new one
--      7 name of the entry  8 payload: the command as JSON  9 sha1 of the payload
--      10 what becomes of the state: 'keep' if there is none, 'drop' with its vectors to fold
--         again from the position on, else its new fields (msgpack flat field, value list)
--
-- Replies: gone | moved (the snapshot or its tag is another one now)
--        | lost (the log does not hold the position) | ok, id, chain
--#include common
--#include append_command_entry

local meta, log, followers, state = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local uid, position, position_chain, fate = ARGV[1], ARGV[4], ARGV[5], ARGV[10]

local stored = redis.call('HGET', followers, uid)
if not stored then return {'gone'} end
local m = redis.call('HMGET', meta, 'last', 'chain', 'fold:' .. uid)
if stored ~= ARGV[2] or (m[3] or '') ~= ARGV[3] then return {'moved'} end
if not holds(log, m[1], m[2], position, position_chain) then return {'lost'} end

local id, chain = append_command(meta, log, ARGV[7], ARGV[8], ARGV[9])
redis.call('HSET', meta, 'fold:' .. uid, ARGV[6], 'barrier:' .. uid, id .. ' ' .. position)
redis.call('HDEL', meta, 'hold:' .. uid, 'aside:' .. uid)
if fate ~= 'keep' then redis.call('DEL', state) end
if fate == 'drop' then
  for v = 5, #KEYS do redis.call('UNLINK', KEYS[v]) end
  redis.call('HSET', followers, uid, position .. ' ' .. position_chain)
elseif fate ~= 'keep' then
  redis.call('HSET', state, unpack(cmsgpack.unpack(fate)))
end
return {'ok', id, chain}
