package diskengine

import (
	"container/list"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestDiskThatIsStuck(t *testing.T) {
	m := new(measured)
	at := func(op operation) *list.Element { return m.ops.PushBack(op) }
	late := at(operation{"sync", "a", time.Now().Add(-7 * time.Second)})
	at(operation{"write", "b", time.Now().Add(-time.Second)})
	if err := m.stuck(); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "sync a is under way for 7s") {
		t.Errorf("after seven seconds: %v", err)
	}
	m.ops.Remove(late)
	if err := m.stuck(); err != nil {
		t.Errorf("after one: %v", err)
	}
}
