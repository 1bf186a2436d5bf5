-- Entries of the audit log, written together as one item. The opening of a call is judged by rate and quota first, each as
-- if it had come alone, so a call over either writes nothing.
-- KEYS[1] the audit log, KEYS[2] the calls of this minute: a hash with the field 't' for the tenant and one per caller,
-- KEYS[3] the bytes stored for the tenant.
-- ARGV[1] the window in ms; ARGV[2] all entries, one a line; ARGV[3] a byte for each of them: 0, or for the opening of a call
-- whose allowance it is judged by; ARGV[4] how many bytes the entries have if they are packed, or ''; then the allowances,
-- each in five: the caller's field, the most calls of the tenant, the most calls of the caller, the most bytes or '', and how
-- many openings are judged by it.
-- Answers the place of the item or '', for how many ms the minute stays used up (0 unless it is), how many calls the minute
-- had before, and, unless every entry was written, for each: which call of the minute it is, 0 for what is no opening, -1 if
-- the tenant's calls are used up, -2 the caller's, -3 the quota. Answers 'plain' instead of a place, and has done nothing, if
-- each entry has to be looked at and they are packed.
local text, whose, packed = ARGV[2], ARGV[3], tonumber(ARGV[4])
local size = packed or #text
local fields, limits, openings, bounded = {'t'}, {}, 0, false
for arg = 5, #ARGV, 5 do
  local limit = {tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2]), tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])}
  fields[#fields + 1], limits[#limits + 1] = ARGV[arg], limit
  openings = openings + limit[4]
  if limit[3] then bounded = true end
end
local counts = {}
if openings > 0 then
  local found = redis.call('HMGET', KEYS[2], unpack(fields))
  for at = 1, #fields do counts[fields[at]] = tonumber(found[at] or '0') end
end
local used = bounded and tonumber(redis.call('GET', KEYS[3]) or '0') or 0
local before, refused, verdicts = counts.t or 0, false, {}
-- As a rule there is room for all of them, whichever comes first, and nobody has to look at each.
local roomy = true
for at, limit in ipairs(limits) do
  roomy = roomy and before + openings <= limit[1] and counts[fields[at + 1]] + openings <= limit[2]
    and (not limit[3] or used + size < limit[3])
end
local grown = size
if not roomy and packed then return {'plain', 0, 0} end
if roomy then
  for at, limit in ipairs(limits) do
    local field = fields[at + 1]
    counts[field] = counts[field] + limit[4]
  end
  if openings > 0 then counts.t = before + openings end
else
  local lines, entry = {}, 0
  grown = 0
  for body in string.gmatch(text, '[^\n]+') do
    entry = entry + 1
    local verdict, limit = 0, limits[string.byte(whose, entry)]
    if limit then
      local caller = fields[string.byte(whose, entry) + 1]
      if counts.t >= limit[1] then
        verdict, refused = -1, true
      -- A caller that is alone may use all of the minute.
      elseif counts[caller] >= limit[2] and counts.t > counts[caller] then
        verdict, refused = -2, true
      elseif limit[3] and used + grown >= limit[3] then
        verdict = -3
      else
        counts.t, counts[caller] = counts.t + 1, counts[caller] + 1
        verdict = counts.t
      end
    end
    if verdict >= 0 then
      lines[#lines + 1] = body
      -- With the line's end between two entries; the last one has none.
      grown = grown + #body + (#lines > 1 and 1 or 0)
    end
    verdicts[entry] = verdict
  end
  text = table.concat(lines, '\n')
end
local item = ''
if grown > 0 then
  if before ~= (counts.t or 0) then
    local written = {}
    for _, field in ipairs(fields) do
      if counts[field] > 0 then
        written[#written + 1] = field
        written[#written + 1] = string.format('%.0f', counts[field])
      end
    end
    redis.call('HSET', KEYS[2], unpack(written))
    -- The minute begins with its first call.
    if before == 0 then redis.call('PEXPIRE', KEYS[2], ARGV[1]) end
  end
  redis.call('INCRBY', KEYS[3], string.format('%.0f', grown))
  item = redis.call('XADD', KEYS[1], '*', 'b', text)
end
-- Last, because the minute may have begun just now.
local left = refused and math.max(redis.call('PTTL', KEYS[2]), 0) or 0
return {item, left, before, unpack(verdicts)}
