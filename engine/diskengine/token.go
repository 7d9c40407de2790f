package diskengine

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/tarryhq/tarry/engine"
)

// token names a lease: the queue's number, the message's id and the lease's
// nonce.
type token struct {
	queue uint32
	id    engine.ID
	nonce nonce
}

const tokenLen = 4 + 8 + 16

var errToken = errors.New("not a lease of this engine")

// String returns the token's outside form: 38 characters, URL-safe.
func (t token) String() string {
	var raw [tokenLen]byte
	binary.BigEndian.PutUint32(raw[:], t.queue)
	binary.BigEndian.PutUint64(raw[4:], uint64(t.id))
	copy(raw[12:], t.nonce[:])
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func parseToken(s string) (token, error) {
	if len(s) != base64.RawURLEncoding.EncodedLen(tokenLen) {
		return token{}, errToken
	}
	var raw [tokenLen + 2]byte // room for what a malformed one decodes to
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(s))
	if err != nil || n != tokenLen {
		return token{}, errToken
	}
	t := token{queue: binary.BigEndian.Uint32(raw[:]), id: engine.ID(binary.BigEndian.Uint64(raw[4:]))}
	copy(t.nonce[:], raw[12:tokenLen])
	return t, nil
}

// cursor and parseCursor are the outside form of a position in a list.
func (p position) cursor() string {
	return base64.RawURLEncoding.EncodeToString(appendID(appendTime(nil, p.at), p.id))
}

func parseCursor(s string) (position, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(raw) != 16 {
		return position{}, errors.New("not a cursor of this engine")
	}
	return position{parseTime(raw), engine.ID(binary.BigEndian.Uint64(raw[8:]))}, nil
}
