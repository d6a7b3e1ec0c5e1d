#!lua
-- End the note of a source's batch, whose predictions are written.
--
-- KEYS 1 meta
-- ARGV 1 source  2 entry id of the batch

local field = 'unpredicted:' .. ARGV[1]
local note = redis.call('HGET', KEYS[1], field)
if note and string.match(note, '^%S+') == ARGV[2] then redis.call('HDEL', KEYS[1], field) end
