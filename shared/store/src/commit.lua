-- The one compare-and-set. Knows versions, expiry and the server's clock; knows no session and no run.
-- KEYS[1] record, KEYS[2] the bytes stored for the tenant, then one key per appended entry, one per index change and a
--         second one for the sum of an index that has one, one per thing beside it, last what must have room.
-- ARGV    expect, body kept ('1') or deleted ('0'), body, expiry ms or '', last moment ms or '',
--         number of entries, number of index changes, channel or '', wake-up, number of things that must have room,
--         number of things beside it, whether bytes are counted ('1') or not (''), the most bytes or '';
--         then per entry: body, expiry ms or '';
--         then per index change: member, rank, expiry ms or '', and 'apart' or 'used' where its ranks are added up, 'used'
--         if the sum is a part of the tenant's bytes, else ''; a rank is a number, 'last' for one above all others, '' for
--         out, '<' and a number for out unless it stands above that;
--         then per thing beside it: 'write', 'replace', 'end' or 'forget', body, expiry ms or ''; or 'trim', the first entry of
--         the stream that stays, how many bytes the tenant has fewer;
--         then per thing that must have room: 'members' of an index or 'sum', the most, how much is added.
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
if ARGV[13] ~= '' and tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[13]) then
  return {4, '', text(now)}
end
local rooms = tonumber(ARGV[10])
for room = 1, rooms do
  local holds, first = KEYS[#KEYS - rooms + room], #ARGV - 3 * (rooms - room + 1)
  local count = ARGV[first + 1] == 'sum' and redis.call('GET', holds) or redis.call('ZCARD', holds)
  if tonumber(count or '0') + tonumber(ARGV[first + 3]) > tonumber(ARGV[first + 2]) then
    return {4, text(room - 1), text(now)}
  end
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

local key, arg, grown = 2, 13, 0
for _ = 1, tonumber(ARGV[6]) do
  key = key + 1
  redis.call('XADD', KEYS[key], '*', 'b', ARGV[arg + 1])
  grown = grown + #ARGV[arg + 1]
  if ARGV[arg + 2] ~= '' then ends(KEYS[key], ARGV[arg + 2]) end
  arg = arg + 2
end
for _ = 1, tonumber(ARGV[7]) do
  key = key + 1
  local index, member, rank, summed = KEYS[key], ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 4]
  local before = summed ~= '' and tonumber(redis.call('ZSCORE', index, member) or '0')
  if rank == '' then
    redis.call('ZREM', index, member)
  elseif rank:sub(1, 1) == '<' then
    local stands = redis.call('ZSCORE', index, member)
    if stands and tonumber(stands) <= tonumber(rank:sub(2)) then redis.call('ZREM', index, member) end
  else
    if rank == 'last' then rank = last(index) end
    redis.call('ZADD', index, rank, member)
    if ARGV[arg + 3] ~= '' then ends(index, ARGV[arg + 3]) end
  end
  if summed ~= '' then
    key = key + 1
    local more = tonumber(redis.call('ZSCORE', index, member) or '0') - before
    if more ~= 0 then redis.call('INCRBY', KEYS[key], text(more)) end
    if summed == 'used' then grown = grown + more end
  end
  arg = arg + 4
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
  elseif what == 'trim' then
    redis.call('XTRIM', KEYS[key], 'MINID', body)
    grown = grown - tonumber(span)
  else
    redis.call('DEL', KEYS[key])
  end
  arg = arg + 3
end
if ARGV[12] == '1' and grown ~= 0 then redis.call('INCRBY', KEYS[2], text(grown)) end
-- Last of the writes: a full server refuses the first growing write only while nothing was written before it.
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) end
if ARGV[8] ~= '' then redis.call('PUBLISH', ARGV[8], ARGV[9]) end
return {1, text(result), text(now)}
