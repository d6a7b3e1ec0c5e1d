#!lua flags=allow-oom
-- Remove a model from its stream; the last follower takes the stream's keys with it.
-- Repeating it changes nothing.
--
-- KEYS 1 meta  2 followers  3 checkpoints  4… the stream's other keys, those of its checkpoints,
--      then the model's own
-- ARGV 1 model uid  2 number of the model's own keys, at the end of KEYS
--      3 number of fields of `checkpoints` that the caller saw
--
-- Reply: 1 if the stream went too, else 0; -1 if there are other checkpoints than the caller saw

local own = tonumber(ARGV[2])
local uid = ARGV[1]
redis.call('HDEL', KEYS[2], uid)
local gone = {'hold:' .. uid, 'aside:' .. uid, 'fold:' .. uid, 'barrier:' .. uid,
  'damaged:' .. uid, 'entry:' .. uid}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 4) == 'pin:' and string.sub(field, -#uid) == uid
    or string.sub(field, 1, 6 + #uid) == 'door:' .. uid .. ':' then
    gone[#gone + 1] = field
  end
end
redis.call('HDEL', KEYS[1], unpack(gone))
for i = #KEYS - own + 1, #KEYS do redis.call('UNLINK', KEYS[i]) end
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('HLEN', KEYS[3]) ~= tonumber(ARGV[3]) then return -1 end
for i = 1, #KEYS - own do redis.call('UNLINK', KEYS[i]) end
return 1
