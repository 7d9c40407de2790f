-- Finds messages. ARGV: their ids. Answers the clock, and the index of each id that a live or
-- dead message has.
tick()
local ids, answer = {unpack(args, 4)}, {us, raw}
local records = call('HMGET', MSG, unpack(ids))
for i = 1, #ids do
	if records[i] and messages().present(ids[i]) then answer[#answer + 1] = i end
end
return answer
