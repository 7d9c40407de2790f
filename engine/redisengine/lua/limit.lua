-- Limits of leases: how many at a time, and how many a second.

-- full reports whether the limit of leased messages is reached.
local function full()
	local l = settings()
	return l and l.flight > 0 and call('ZCOUNT', LEASES, '(' .. now, '+inf') >= l.flight
end

-- The state of a rate is one instant: when its bucket would have been empty. It is in
-- microseconds since 2026, which leaves a double enough fraction.
local EPOCH = 1767225600000000
local base

-- each returns the microseconds in which one lease becomes available.
local function each(l) return math.max(1, math.floor(1000000000 / l.rate)) / 1000 end

-- permits returns how many of n leases may be given now.
local function permits(n)
	local l = settings()
	if not l then return n end
	if l.flight > 0 then
		n = math.min(n, math.max(0, l.flight - call('ZCOUNT', LEASES, '(' .. now, '+inf')))
	end
	if l.rate > 0 then
		local at, kept = us - EPOCH, call('HGET', META, 'bucket')
		kept = kept and unpacked('>d', kept) or -math.huge
		base = math.min(at, math.max(at - l.burst * each(l), kept))
		-- The clock has stepped back: refill from now on.
		if kept > at then call('HSET', META, 'bucket', struct.pack('>d', base)) end
		n = math.min(n, math.floor((at - base + 0.05) / each(l)))
	end
	return n
end

-- given takes n leases from the bucket.
local function given(n)
	if not base or n == 0 then return end
	base = base + n * each(settings())
	call('HSET', META, 'bucket', struct.pack('>d', base))
end

-- gathers returns when the rate permits leases again: one, or as many as come in 5 ms if that
-- is more.
local function gathers()
	local l = settings()
	local some = math.min(l.burst, math.max(1, math.floor(5000 / each(l))))
	return ceil((base + some * each(l) + EPOCH) / 1000 - 0.00005)
end
