-- tell is how a script answers that must not act twice: it keeps the answer for a while,
-- in case that gets lost and the client asks again.
local KEPT = 10000 -- milliseconds; longer than a client asks
local function tell(answer)
	call('SET', KEYS[13], cmsgpack.pack(answer), 'PX', KEPT)
	return answer
end
