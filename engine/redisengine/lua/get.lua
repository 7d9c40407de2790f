-- Looks a message up: ARGV is the clock, id, key; by key the live one, else the
-- newest dead one. Answers the clock and the message, if there is one.
tick()
local M = messages()
local m = M.named(ARGV[2], ARGV[3])
if not m and ARGV[2] == '' then
	local hash = redis.sha1hex(ARGV[3])
	local newest = call('ZREVRANGEBYLEX', GRAVE, '[' .. hash .. '~', '[' .. hash, 'LIMIT', 0, 1)[1]
	if newest then m = M.present(newest:sub(-19)) end
end
if not m then return {us, raw} end
local s = M.stands(m, true)
return {us, raw, s[1], s[2], s[3], s[4]}
