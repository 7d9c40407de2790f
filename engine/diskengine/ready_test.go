package diskengine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestDiskThatIsStuck(t *testing.T) {
	now := time.Now()
	d := &disk{ops: map[*operation]struct{}{{"write", "b.log", now.Add(-time.Second)}: {}}}
	if err := d.stuck(now); err != nil {
		t.Errorf("after a second: %v", err)
	}
	d.ops[&operation{"sync", "a.log", now.Add(-7 * time.Second)}] = struct{}{}
	if err := d.stuck(now); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "sync a.log is under way for 7s") {
		t.Errorf("after seven: %v", err)
	}
}
