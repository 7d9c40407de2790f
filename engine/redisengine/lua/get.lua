-- Returns a message by id or key: by key the live one, else the memory of the key, else that
-- which died or ended last and is listed. Answers the clock and the message; or the memory
-- ('' for none), the id and the entry of the history ('' for none); or nothing.
tick()
local M = messages()
local id, key, m, memory, entry, _ = args[4], args[5], nil, nil, nil, nil
if id ~= '' then
	m, _, _, entry = M.present(id)
	entry = not m and (entry or M.listed(id))
else
	m, memory, entry = M.named('', key)
end

if memory then
	id = sub(memory, 1, 8)
	entry = entry or M.listed(id)
elseif not m and key ~= '' then
	-- The message that holds the key may have died by a lapse, or expired, which no script has
	-- applied yet.
	local holder, just, best = M.holder(key), entry, ''
	entry = nil
	local function offer(at, other, dead, listed)
		local place = M.grave(key, at, other)
		if before(best, place) then best, id, m, entry = place, other, dead, listed end
	end
	local spent = holder and M.present(holder)
	if spent then offer(spent.died, holder, spent) end
	if just then offer(M.ended(just), holder, nil, just) end
	local hash = redis.sha1hex(key)
	local newest = call('ZREVRANGEBYLEX', GRAVE, '[' .. hash .. '~', '[' .. hash, 'LIMIT', 0, 1)[1]
	local dead = newest and M.present(newest:sub(-8))
	if dead then offer(dead.died, dead.id, dead) end
	newest = sub(call('HGET', HISTORY, '=' .. key) or '', 1, 8)
	local listed, at = M.listed(newest)
	if listed then offer(at, newest, nil, listed) end
end
if m then
	local s = M.stands(m, true)
	return {us, raw, s[1], s[2], s[3], s[4]}
end
if not memory and not entry then return {us, raw} end
return {us, raw, memory or '', id, entry or ''}
