-- The opening of a call: judges rate and quota before the audit entry is appended, so a call over either writes nothing.
-- KEYS[1] the audit log, KEYS[2] the calls of this minute: a hash with the field 't' for the tenant and one per caller,
-- KEYS[3] the bytes stored for the tenant.
-- ARGV    the entry, the most calls of the tenant, the most calls of the caller, the caller's field, the window in ms,
--         the most bytes or ''.
local counts = redis.call('HMGET', KEYS[2], 't', ARGV[4])
local tenant, caller = tonumber(counts[1] or '0'), tonumber(counts[2] or '0')
if tenant >= tonumber(ARGV[2]) then return {'tenant', redis.call('PTTL', KEYS[2])} end
-- A caller that is alone may use all of the minute.
if caller >= tonumber(ARGV[3]) and tenant > caller then return {'caller', redis.call('PTTL', KEYS[2])} end
if ARGV[6] ~= '' and tonumber(redis.call('GET', KEYS[3]) or '0') >= tonumber(ARGV[6]) then return {'quota', 0} end
redis.call('HINCRBY', KEYS[2], 't', 1)
redis.call('HINCRBY', KEYS[2], ARGV[4], 1)
-- The minute begins with its first call.
if tenant == 0 then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
redis.call('INCRBY', KEYS[3], #ARGV[1])
return {redis.call('XADD', KEYS[1], '*', 'b', ARGV[1]), tenant + 1}
