package server

import "net/http"

// turns bounds how many requests do something at a time; others wait for their turn.
type turns chan struct{}

// answer sends what write appends in a turn. It sends after the turn, so that a slow reader
// delays no other request. If the client goes before the turn, it returns why.
func (t turns) answer(x *exchange, r *http.Request, write func(b []byte) ([]byte, error)) error {
	a := newAnswer()
	defer a.free()
	select {
	case t <- struct{}{}:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	err := func() (err error) {
		defer func() { <-t }()
		a.b, err = write(a.b)
		return err
	}()
	if err != nil {
		return err
	}
	return x.s.send(x, a, http.StatusOK)
}
