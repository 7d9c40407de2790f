-- Taking messages, for those who lease and those who claim.

-- nonce is the secret of one lease: nobody guesses it without the seed, which stays
-- with the client that leased.
local function nonce(seed, id) return redis.sha1hex(seed .. id):sub(1, 24) end

-- take hands out waiting messages, given as ids and dues, until their contents reach
-- so many bytes. With forget they are deleted at once, else leased: the span is ttr
-- in microseconds, '' for each message's own. It returns four values a message, as
-- stands does, how many messages it looked at, and how many it handed out.
local function take(ids, dues, span, seed, forget, bytes)
	local records = call('HMGET', MSG, unpack(ids))
	local pasts = call('HMGET', STATE, unpack(ids))
	local out, plain, leases, states, free = {}, {}, {}, {}, {}
	local gone, size, looked = 0, 0, 0
	for i, id in ipairs(ids) do
		if size >= bytes then break end
		looked = i
		local record, past = records[i], pasts[i]
		if not record then
			-- Nothing is known of it: it must not stand in the way of others.
			plain[#plain + 1] = id
			call('ZREM', READY, id)
			call('ZREM', TURN, string.format('%015.0f', dues[i] + 62135596800000) .. id)
		else
			local m = {id = id, record = record, due = dues[i]}
			local _
			_, _, m.flags, _, m.max, m.ttr, m.expire, m.size, m.key = struct.unpack(HEAD, record)
			m.rare, m.large = m.flags % 2 == IS_RARE, m.flags >= IS_LARGE
			if past then
				_, _, m.attempt, _, _, m.expires, _, _, _, _, m.reason = struct.unpack(PAST, past)
			else
				m.attempt, m.reason = 0, ''
				m.expires = m.expire > 0 and m.due + m.expire or math.huge
			end
			m.mark = 'W'
			if m.expires < now then
				m.died, m.deadline, m.nonce = 0, 0, ''
				drop(m)
				fell('expired')
			else
				if m.rare then leave(m) else plain[#plain + 1] = id end
				m.mark, m.attempt, m.died = 'L', m.attempt + 1, 0
				m.deadline = deadline(span == '' and m.ttr or tonumber(span))
				m.nonce = nonce(seed, id)
				local state = pack(m)
				local n = #out
				out[n + 1], out[n + 2], out[n + 3], out[n + 4] = id, state, record, content(m)
				size = size + m.size
				gone = gone + 1
				if forget then
					free[#free + 1] = m
				else
					leases[#leases + 1], leases[#leases + 2] = m.deadline, id
					states[#states + 1], states[#states + 2] = id, state
				end
			end
		end
	end
	if #plain > 0 then call('ZREM', DUE, unpack(plain)) end
	if #leases > 0 then
		call('ZADD', LEASES, unpack(leases))
		call('HSET', STATE, unpack(states))
	end
	for _, m in ipairs(free) do drop(m) end
	return out, looked, gone
end
