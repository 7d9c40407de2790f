-- before compares texts by bytes, as Redis orders members of equal scores. Lua's own order
-- is that of the server's locale.
local function before(a, b)
	for i = 1, #b do
		local x, y = byte(a, i), byte(b, i)
		if x ~= y then return not x or x < y end
	end
	return false
end
