-- Entries of the audit log, written together as one item. The opening of a call is judged by rate and quota first, each as
-- if it had come alone, so a call over either writes nothing.
-- KEYS[1] the audit log, KEYS[2] the calls of this minute: a hash with the field 't' for the tenant and one per caller,
-- KEYS[3] the bytes stored for the tenant.
-- ARGV[1] the window in ms; then per entry: the entry, and for the opening of a call the caller's field, the most calls of
--         the tenant, the most calls of the caller, the most bytes or ''; for any other entry four times ''.
-- Answers the place of the item or '', for how many ms the minute stays used up (0 unless it is), and per entry: which call
-- of the minute it is, 0 for what is no opening, -1 if the tenant's calls are used up, -2 the caller's, -3 the quota.
local fields, known = {'t'}, {}
local judged, bounded = false, false
for arg = 2, #ARGV, 5 do
  local caller = ARGV[arg + 1]
  if caller ~= '' then
    judged = true
    if ARGV[arg + 4] ~= '' then bounded = true end
    if not known[caller] then
      known[caller] = true
      fields[#fields + 1] = caller
    end
  end
end
local counts, began = {}, false
if judged then
  local found = redis.call('HMGET', KEYS[2], unpack(fields))
  for at, field in ipairs(fields) do counts[field] = tonumber(found[at] or '0') end
  began = counts.t == 0
end
local used = bounded and tonumber(redis.call('GET', KEYS[3]) or '0') or 0
local before, grown, lines, verdicts, refused = counts.t or 0, 0, {}, {}, false
for arg = 2, #ARGV, 5 do
  local body, caller, verdict = ARGV[arg], ARGV[arg + 1], 0
  if caller ~= '' then
    if counts.t >= tonumber(ARGV[arg + 2]) then
      verdict, refused = -1, true
    -- A caller that is alone may use all of the minute.
    elseif counts[caller] >= tonumber(ARGV[arg + 3]) and counts.t > counts[caller] then
      verdict, refused = -2, true
    elseif ARGV[arg + 4] ~= '' and used + grown >= tonumber(ARGV[arg + 4]) then
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
  verdicts[#verdicts + 1] = verdict
end
local item = ''
if #lines > 0 then
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
    if began then redis.call('PEXPIRE', KEYS[2], ARGV[1]) end
  end
  redis.call('INCRBY', KEYS[3], string.format('%.0f', grown))
  item = redis.call('XADD', KEYS[1], '*', 'b', table.concat(lines, '\n'))
end
-- Last, because the minute may have begun just now.
local left = refused and math.max(redis.call('PTTL', KEYS[2]), 0) or 0
return {item, left, unpack(verdicts)}
