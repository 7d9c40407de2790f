package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"github.com/tarryhq/tarry/internal/nettest"
)

// readyz asks a server whether it is ready.
func readyz(t *testing.T, url string) (status int, code, message, hint string) {
	t.Helper()
	status, body, err := fetch(t, url+"/readyz")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	e := answer.Error
	return status, e.Code, e.Message, e.Hint
}

// A store that takes long to open is told of, and the server can be interrupted.
func TestReadyzWhileTheStoreIsBeingOpened(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	address := fmt.Sprint("127.0.0.1:", nettest.FreePort(t))
	s := world{}.start(t, "serve", "--store", "http://"+mute.Addr().String(), "--http", address)
	for { // until it listens
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			break
		}
	}
	if status, code, message, hint := readyz(t, "http://"+address); status != 503 || code != "unavailable" || message != "the store is being opened" || hint == "" {
		t.Errorf("%d %s: %s (%s)", status, code, message, hint)
	}
	if code := s.stop(t); code != exitFailed {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}
