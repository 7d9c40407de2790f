-- A script that must not act twice stores its answer for a while, with reply. The same call
-- may come again, because its answer was lost or the network delayed it; it then gets the
-- same answer. A plain answer is stored as its clock and soonest due alone: the rest follows
-- from the request.
local KEPT = 10000 -- milliseconds; longer than a call may begin, see tick
local PLAIN, MARK = '>c1ddd', '!' -- no MessagePack array begins like that
local function reply(answer, plain, soon)
	local kept
	if plain then
		kept = struct.pack(PLAIN, MARK, answer[1], answer[2], soon or math.huge)
	else
		kept = cmsgpack.pack(answer)
	end
	call('SET', KEYS[16], kept, 'PX', KEPT)
	return answer
end

-- The soonest due of the stored plain answer, false for none; nil if the call is new. With a
-- stored answer, the clock is the stored one.
local replied
do
	local kept = call('GET', KEYS[16])
	if kept and sub(kept, 1, 1) ~= MARK then return cmsgpack.unpack(kept) end
	if kept then
		local _
		_, us, raw, replied = unpacked(PLAIN, kept)
		now = math.floor(us / 1000)
		replied = replied < math.huge and replied
	end
end
if replied == nil then tick() end
