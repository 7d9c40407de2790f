-- A script that must not act twice keeps its answer for a while, with tell. The same call
-- may come again, because its answer was lost or because the network delivers it late: it
-- is then told what it was told before. Of an answer that is plain, what it says of each
-- message follows from what was asked: only the clock and the soonest due are kept.
local KEPT = 10000 -- milliseconds; longer than a call may begin, see tick
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

-- The soonest due of a plain answer that this call was given before, false for none; nil:
-- it has come for the first time. The clock is then as it was.
local told
do
	local kept = call('GET', KEYS[14])
	if kept and sub(kept, 1, 1) ~= MARK then return cmsgpack.unpack(kept) end
	if kept then
		local _
		_, us, raw, told = unpacked(PLAIN, kept)
		now = math.floor(us / 1000)
		told = told < math.huge and told
	end
end
if told == nil then tick() end
