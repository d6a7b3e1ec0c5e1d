#!lua
-- Compare and set one entry of the index.
-- What is compared is the model's life and its stage, not the text: another version of the
-- service may have written the same entry with fewer fields.
--
-- KEYS 1 index
-- ARGV 1 name  2 expected uid ('' = no entry; 'alias' = an alias)  3 expected base ('' = none yet)
--      4 expected to be deleting: 1, or 0  5 new entry as JSON ('' = remove)
--      6 how many entries there may be after a new one (0 = any number)
--
-- Reply: 1 if it was set, 2 if there are too many entries, else 0

local found = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[2] == '' then
  if found then return 0 end
  if ARGV[6] ~= '0' and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[6]) then return 2 end
else
  local readable, entry = pcall(cjson.decode, found or '')
  if not readable or type(entry) ~= 'table' then return 0 end
  local base = type(entry.base) == 'string' and entry.base or ''
  local deleting = entry.deleting == true and '1' or '0'
  if (entry.uid or 'alias') ~= ARGV[2] or base ~= ARGV[3] or deleting ~= ARGV[4] then return 0 end
end
if ARGV[5] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[5])
end
return 1
