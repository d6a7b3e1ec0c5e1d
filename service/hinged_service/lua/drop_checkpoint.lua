#!lua flags=allow-oom
-- Remove a checkpoint, unless a model still needs it: one that starts with it, or one that was
-- commanded to restore it and whose snapshot is not past that command.
--
-- KEYS 1 meta  2 followers  3 checkpoints  4… the checkpoint's own keys
-- ARGV 1 checkpoint uid  2 its name, or ''
--
-- Replies: pinned, model uid | ok
--#include common

local meta, followers, checkpoints = KEYS[1], KEYS[2], KEYS[3]
local all = redis.call('HGETALL', meta)
local prefix = 'pin:' .. ARGV[1] .. ':'
local pins = {}
for i = 1, #all, 2 do
  if string.sub(all[i], 1, #prefix) == prefix then
    local uid = string.sub(all[i], #prefix + 1)
    local stored = redis.call('HGET', followers, uid)
    if stored and (all[i + 1] == 'base' or compare(words(stored), all[i + 1]) < 0) then
      return {'pinned', uid}
    end
    pins[#pins + 1] = all[i]
  end
end
for _, pin in ipairs(pins) do redis.call('HDEL', meta, pin) end
redis.call('HDEL', checkpoints, ARGV[1])
if ARGV[2] ~= '' then redis.call('HDEL', checkpoints, 'name:' .. ARGV[2]) end
for i = 4, #KEYS do redis.call('UNLINK', KEYS[i]) end
return {'ok'}
