package diskengine

import (
	"container/list"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

func TestDiskThatIsStuck(t *testing.T) {
	m := new(store.Measured)
	at := func(op store.Operation) *list.Element { return m.Ops.PushBack(op) }
	late := at(store.Operation{What: "sync", Name: "a", Since: time.Now().Add(-7 * time.Second)})
	at(store.Operation{What: "write", Name: "b", Since: time.Now().Add(-time.Second)})
	if err := m.Stuck(); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "sync a is under way for 7s") {
		t.Errorf("after seven seconds: %v", err)
	}
	m.Ops.Remove(late)
	if err := m.Stuck(); err != nil {
		t.Errorf("after one: %v", err)
	}
}
