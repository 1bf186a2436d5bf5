-- The one compare-and-set. Knows versions, expiry and the server's clock; knows no session and no run.
-- KEYS[1] record, then one key per appended entry, one per index change, one per thing beside it, last the index that
--         must have room.
-- ARGV    expect, body kept ('1') or deleted ('0'), body, expiry ms or '', last moment ms or '',
--         number of entries, number of index changes, channel or '', wake-up, most members of that index or '',
--         number of things beside it;
--         then per entry: body, expiry ms or '';
--         then per index change: member, rank, expiry ms or ''; a rank is a number, 'last' for one above all others,
--         '' for out, '<' and a number for out unless it stands above that;
--         then per thing beside it: 'write', 'replace', 'end' or 'forget', body, expiry ms or ''.
-- Everything is judged before anything is written, so a refusal leaves no trace.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
-- An end counts from the moment that is answered, not from the later one at which this line of the script is reached.
local function ends(key, span, ...) redis.call('PEXPIREAT', key, text(now + tonumber(span)), ...) end

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
    ends(KEYS[1], ARGV[4])
  else
    redis.call('PERSIST', KEYS[1])
  end
end

local function last(index)
  local top = redis.call('ZREVRANGE', index, 0, 0, 'WITHSCORES')
  if top[2] and tonumber(top[2]) >= now then return text(tonumber(top[2]) + 1) end
  return text(now)
end

local key, arg = 1, 11
for _ = 1, tonumber(ARGV[6]) do
  key = key + 1
  redis.call('XADD', KEYS[key], '*', 'b', ARGV[arg + 1])
  if ARGV[arg + 2] ~= '' then ends(KEYS[key], ARGV[arg + 2]) end
  arg = arg + 2
end
for _ = 1, tonumber(ARGV[7]) do
  key = key + 1
  local member, rank = ARGV[arg + 1], ARGV[arg + 2]
  if rank == '' then
    redis.call('ZREM', KEYS[key], member)
  elseif rank:sub(1, 1) == '<' then
    local stands = redis.call('ZSCORE', KEYS[key], member)
    if stands and tonumber(stands) <= tonumber(rank:sub(2)) then redis.call('ZREM', KEYS[key], member) end
  else
    if rank == 'last' then rank = last(KEYS[key]) end
    redis.call('ZADD', KEYS[key], rank, member)
    if ARGV[arg + 3] ~= '' then ends(KEYS[key], ARGV[arg + 3]) end
  end
  arg = arg + 3
end
for _ = 1, tonumber(ARGV[11]) do
  key = key + 1
  local what, body, span = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3]
  if what == 'write' then
    redis.call('HSET', KEYS[key], 'v', '1', 'b', body)
    if span ~= '' then ends(KEYS[key], span) else redis.call('PERSIST', KEYS[key]) end
  elseif what == 'replace' then
    if redis.call('EXISTS', KEYS[key]) == 1 then redis.call('HSET', KEYS[key], 'b', body) end
  elseif what == 'end' then
    ends(KEYS[key], span, 'LT')
  else
    redis.call('DEL', KEYS[key])
  end
  arg = arg + 3
end
-- Last of the writes: a full server refuses the first growing write only while nothing was written before it.
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) end
if ARGV[8] ~= '' then redis.call('PUBLISH', ARGV[8], ARGV[9]) end
return {1, text(result), text(now)}
