package tarry

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	if d, err := ParseDuration("1d12h"); d != 36*time.Hour || err != nil || FormatDuration(d) != "36h" {
		t.Errorf("%v, %v", d, err)
	}
	for s, want := range map[string]string{"soon": `"soon" is not a duration; `, "999999999999h": `"999999999999h" is out of range: a duration is at most 106751d`} {
		if _, err := ParseDuration(s); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v is no ErrInvalid that says %s", err, want)
		}
	}
}
