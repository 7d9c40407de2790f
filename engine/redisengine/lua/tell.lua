-- tell is how a script answers that must not act twice: it keeps the answer for a while,
-- in case that gets lost and the client asks again. Of one that is plain, what it says of
-- each message follows from what was asked: only the clock and the soonest due are kept.
local KEPT = 10000 -- milliseconds; longer than a client asks
local PLAIN, MARK = '>c1ddd', '!' -- no array of MessagePack begins like that
local function tell(answer, plain, soon)
	local kept
	if plain then
		kept = struct.pack(PLAIN, MARK, answer[1], answer[2], soon or math.huge)
	else
		kept = cmsgpack.pack(answer)
	end
	call('SET', KEYS[14], kept, 'PX', KEPT)
	return answer
end

-- The soonest due of a plain answer that this call was given before, false for none.
local told
