package tarry

import (
	"errors"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	if d, err := ParseDuration("1d12h"); d != 36*time.Hour || err != nil || FormatDuration(d) != "36h" {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := ParseDuration("soon"); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v is no ErrInvalid", err)
	}
}
