-- Shows the ready message that is first in the order of leases. Answers the clock; whether to
-- call again to sweep; then, unless none is ready, priority and due, and the message without
-- large content. A server that refuses writes shows what was made ready before.
tick()
local busy, _, rares = sweep()
if busy then return {us, raw, 1} end
while room > 0 do
	-- One that may not be dropped stays in front of the others.
	local ids, dues, priorities = ready(readonly and room or 1, rares or readonly)
	for i = 1, #ids do
		local m = messages().waiting(ids[i], dues[i])
		if m then
			local s = messages().stands(m, false)
			return {us, raw, 0, priorities[i], dues[i], s[1], s[2], s[3], s[4]}
		end
	end
	if readonly or #ids == 0 then return {us, raw, 0} end
	room = room - 1
end
return {us, raw, 1}
