-- The one compare-and-set. Knows versions, expiry and the server's clock; knows no session and no run.
-- KEYS[1] record, then one key per appended entry, then one per index change, last the index that must have room.
-- ARGV    expect, body kept ('1') or deleted ('0'), body, expiry ms or '', last moment ms or '',
--         number of entries, number of index changes, channel or '', wake-up, most members of that index or '',
--         then per entry: body, expiry ms or ''; then per index change: member, rank or '', expiry ms or ''.
-- Everything is judged before anything is written, so a refusal leaves no trace.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end

local found = redis.call('HMGET', KEYS[1], 'v', 'b')
local version = tonumber(found[1] or '0')
if version ~= tonumber(ARGV[1]) then
  return {2, text(version), found[2] or ''}
end
if ARGV[5] ~= '' and now > tonumber(ARGV[5]) then
  return {3, '', text(now)}
end
if ARGV[10] ~= '' and redis.call('ZCARD', KEYS[#KEYS]) >= tonumber(ARGV[10]) then
  return {3, '', text(now)}
end

local result = 0
if ARGV[2] == '1' then
  result = version + 1
  redis.call('HSET', KEYS[1], 'v', text(result), 'b', ARGV[3])
  if ARGV[4] ~= '' then
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  else
    redis.call('PERSIST', KEYS[1])
  end
end

local key, arg = 1, 10
for _ = 1, tonumber(ARGV[6]) do
  key = key + 1
  redis.call('XADD', KEYS[key], '*', 'b', ARGV[arg + 1])
  if ARGV[arg + 2] ~= '' then redis.call('PEXPIRE', KEYS[key], ARGV[arg + 2]) end
  arg = arg + 2
end
for _ = 1, tonumber(ARGV[7]) do
  key = key + 1
  if ARGV[arg + 2] ~= '' then
    redis.call('ZADD', KEYS[key], ARGV[arg + 2], ARGV[arg + 1])
    if ARGV[arg + 3] ~= '' then redis.call('PEXPIRE', KEYS[key], ARGV[arg + 3]) end
  else
    redis.call('ZREM', KEYS[key], ARGV[arg + 1])
  end
  arg = arg + 3
end
-- Last of the writes: a full server refuses the first growing write only while nothing was written before it.
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) end
if ARGV[8] ~= '' then redis.call('PUBLISH', ARGV[8], ARGV[9]) end
return {1, text(result), text(now)}
