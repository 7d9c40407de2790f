-- Hands out what is due: ARGV is the clock, the channel and the hint for those who
-- sleep, what to do (lease, forget or look), how many at most, the span of the leases
-- in microseconds ('' for each message's own), the seed of their nonces, and how many
-- bytes of contents at most.
--
-- Answers the clock, whether more is ready, whether to call again because there was
-- too much to sweep, when something happens next, how often others were woken, how
-- many have expired and died since that was last told, then four values a message; to
-- look, as long as anything is ready, instead of these priority, due and id of each.
local mode, most = ARGV[4], tonumber(ARGV[5])
local answer = {us, raw, 0, 0, false, 0, 0, 0}
if sweep() then
	answer[4] = 1
	return answer
end

-- ready returns up to n ready messages in the order (priority, due, id). Those that
-- have expired may be among them.
local function ready(n)
	local ids, dues, priorities = {}, {}, {}
	local function add(id, due, priority)
		local at = #ids + 1
		ids[at], dues[at], priorities[at] = id, due, priority
	end
	local usual = call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, n)
	local rare = {}
	if call('EXISTS', TURN) == 1 then rare = call('ZRANGE', TURN, 0, n - 1, 'WITHSCORES') end
	local u, r = 1, 1
	while #ids < n and (u <= #usual or r <= #rare) do
		local rareFirst = false
		if r <= #rare then
			local priority = tonumber(rare[r + 1])
			local due, id = tonumber(rare[r]:sub(1, 15)) - 62135596800000, rare[r]:sub(16)
			if u > #usual or priority < USUAL then
				rareFirst = true
			elseif priority == USUAL then
				local other = tonumber(usual[u + 1])
				rareFirst = due < other or due == other and id < usual[u]
			end
			if rareFirst then
				add(id, due, priority)
				r = r + 2
			end
		end
		if not rareFirst then
			add(usual[u], tonumber(usual[u + 1]), USUAL)
			u = u + 2
		end
	end
	return ids, dues, priorities
end

-- shown is ready without those that have expired, which are dropped.
local function shown(n)
	while true do
		local ids, dues, priorities = ready(n)
		local dropped = false
		if call('EXISTS', TURN) == 1 then
			for _, id in ipairs(ids) do
				if not present(id) then dropped = true end
			end
		end
		if not dropped then return ids, dues, priorities end
	end
end

local meta = call('HMGET', META, 'paused', 'wakes', 'expired', 'died')
answer[6] = tonumber(meta[2] or 0)
fallen = {expired = 0, died = 0}
local till = paused(meta[1])
if till then
	if till < math.huge then answer[5] = till end
else
	if mode == 'look' then
		local ids, dues, priorities = shown(most)
		for i, id in ipairs(ids) do
			local n = #answer
			answer[n + 1], answer[n + 2], answer[n + 3] = priorities[i], dues[i], id
		end
		if #ids > 0 then return answer end
	end
	local left, bytes = mode == 'look' and 0 or most, tonumber(ARGV[8])
	local lapses = earliest(LEASES)
	while left > 0 do
		local ids, dues = ready(left)
		if #ids == 0 then break end
		local out, looked, gone = take(ids, dues, ARGV[6], ARGV[7], mode == 'forget', bytes)
		for _, value in ipairs(out) do answer[#answer + 1] = value end
		left = left - gone
		if looked < #ids or gone == looked then break end
	end
	if earliest(DUE) <= now or call('EXISTS', TURN) == 1 then
		answer[3] = 1
	else
		local lapse = earliest(LEASES)
		local next = math.min(earliest(DUE), earliest(RARE), lapse)
		if next < math.huge then answer[5] = next end
		-- Should this client die, others must know when to come.
		if lapse == next and lapse < lapses then
			wake(ARGV[2], ARGV[3], lapse)
			answer[6] = answer[6] + 1
		end
	end
end
answer[7] = tonumber(meta[3] or 0) + fallen.expired
answer[8] = tonumber(meta[4] or 0) + fallen.died
if answer[7] + answer[8] > 0 then call('HDEL', META, 'expired', 'died') end
return answer
