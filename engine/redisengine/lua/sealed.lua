-- sealed reports whether a nonce belongs to the lease with this secret. A nonce is a prefix
-- of the SHA-1 of secret and id, so that it reveals no other. The client that leased may
-- pass the secret itself.
local function sealed(secret, id, nonce)
	if secret == '' then return false end
	return nonce == secret or nonce == sub(redis.sha1hex(secret .. id), 1, 32)
end
