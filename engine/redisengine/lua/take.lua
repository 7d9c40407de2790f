-- All leases of one call have the same secret. Only the client that leased has it, and
-- derives the nonces of the tokens from it: see sealed.lua.

-- worker is the name for the next lease. From args[9] on there are names, each with how many
-- leases it takes, and at last the name for all others.
local turn, takes = 9, nil
local function worker()
	while args[turn + 1] do
		takes = takes or tonumber(args[turn + 1])
		if takes > 0 then
			takes = takes - 1
			break
		end
		turn, takes = turn + 2, nil
	end
	return args[turn]
end

-- How many messages this script has leased, and whether the last must be alone.
local taken, alone = 0, false

-- begun is the past, up to its key, of a message of the usual policy at its first lease.
local function begun(flags, due, ends, secret)
	return struct.pack('>c1BI4I4ddddBc0', 'L', flags, 1, MAX_ATTEMPTS, due, math.huge, ends, now, #secret, secret)
end

-- take leases up to most of the waiting messages given as ids and dues, within the bytes. A
-- message that lapsed twice is leased alone. With forget, messages are deleted instead. span
-- is in microseconds, '' for each message's own. It appends four values a message to out, as
-- stands does, and returns how many it looked at, how many it leased, and the first
-- deadline.
local function take(out, ids, dues, most, span, secret, forget, bytes)
	local records = call('HMGET', MSG, unpack(ids))
	local pasts = call('HMGET', STATE, unpack(ids))
	local plain, leases, states, p, l, o = {}, {}, {}, 0, 0, #out
	local gone, size, looked, lapse = 0, 0, 0, math.huge
	local till = span ~= '' and deadline(tonumber(span))
	local common = till or deadline(TTR)
	-- Consecutive messages often share their past and their deadline. These are made once,
	-- because formatting numbers is slow.
	local past, ofdue, offlags, text, ofends
	for i = 1, #ids do
		if size >= bytes or gone >= most or alone then break end
		looked = i
		local id, due, record, state = ids[i], dues[i], records[i], nil
		local ends, flags, key = common, nil, nil
		if record and not pasts[i] then flags, key = usual(record) end
		if flags then
			if due ~= ofdue or flags ~= offlags then
				past, ofdue, offlags = begun(flags, due, common, secret), due, flags
			end
			state = past .. key .. '\0\0' .. worker()
		else
			local sound, _, max, ttr, expire, isolated
			if record then sound, flags, _, key, max, ttr, expire, _, _, isolated = parse(record) end
			local attempt, expires, before, failures = 0, math.huge, '', ''
			if sound and pasts[i] then
				sound, _, _, attempt, _, _, expires, _, _, before, _, failures = story(pasts[i])
			elseif sound and expire > 0 then
				expires = due + expire
			end
			if not sound or expires < now then
				messages().waiting(id, due)
			else
				alone = before ~= '' and isolated and attempt >= 2
				if alone and taken > 0 then
					looked = i - 1
					break
				end
				ends = (till or deadline(ttr)) + spread(id, attempt + 1, max, isolated)
				state = struct.pack(PAST, 'L', flags, attempt + 1, max, due, expires, ends, now,
					#secret, secret, #key, key, #failures, failures) .. worker()
			end
		end
		if state then
			if flags % 2 == IS_RARE then
				messages().leave({id = id, mark = 'W', rare = true, due = due})
			else
				p = p + 1
				plain[p] = id
			end
			local content = flags % 4 >= IS_LARGE and call('HGET', BODY, id) or ''
			out[o + 1], out[o + 2], out[o + 3], out[o + 4] = id, state, record, content
			size = size + #record + #content
			o = o + 4
			gone, taken = gone + 1, taken + 1
			if ends < lapse then lapse = ends end
			if ends ~= ofends then text, ofends = format('%.0f', ends), ends end
			leases[l + 1], leases[l + 2] = text, id
			states[l + 1], states[l + 2] = id, state
			l = l + 2
		end
	end
	if p > 0 then call('ZREM', DUE, unpack(plain)) end
	if l > 0 then
		call('HSET', STATE, unpack(states))
		if forget then
			for i = 2, l, 2 do messages().finish(messages().find(leases[i]), ACKED, now) end
		else
			call('ZADD', LEASES, unpack(leases))
		end
	end
	return looked, gone, lapse
end
