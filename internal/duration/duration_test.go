package duration

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "1500ms": 1500 * time.Millisecond, "30m": 30 * time.Minute, "48h": 48 * time.Hour,
		"7d": 7 * day, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "-1d12h": -36 * time.Hour, "+2d": 2 * day,
		"0.5d30m": 12*time.Hour + 30*time.Minute, "1h30m10.5s": 90*time.Minute + 10500*time.Millisecond, "106751d": 106751 * day,
	} {
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "d", "7", "7 d", "1h1d", "1d1d", "1d-1h", "1d+1h", "dd", "d1h", "1w", "-", "1dx", "NaNd", "infd", "1e3s", "0xd",
		"-7", "7.", "1h7", "7d5", "99999999999999999999", "999999999999h1", "999999999999x", "999999999999h-1s", "1h999999999999d",
	} {
		if got, err := Parse(s); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%q) = %v, %v; want ErrSyntax", s, got, err)
		}
	}
	for _, s := range []string{
		"999999999999h", "-999999999999h", "+999999999999.5h30m", "9999999999999999999999ns", "99999999999999999999µs", "106752d", "-106752d",
		"106751d24h", "-106751d24h", "9999999999999999999d", "1d999999999999h", "9.5d999999999999h",
	} {
		if got, err := Parse(s); !errors.Is(err, ErrRange) {
			t.Errorf("Parse(%q) = %v, %v; want ErrRange", s, got, err)
		}
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 48 * time.Hour: "48h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 10 * time.Second: "10s", 1500 * time.Millisecond: "1.5s",
		-time.Minute: "-1m",
	} {
		if got := Format(d); got != want {
			t.Errorf("Format(%d) = %q, want %q", d, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"7d", "1d12h", "-1.5d", "1500ms", "106751d23h47m16.854775807s", "d", "0d0s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err != nil {
			return
		}
		if got, err := Parse(Format(d)); err != nil || got != d {
			t.Errorf("%q is %d, formatted %q, read back %d, %v", s, d, Format(d), got, err)
		}
		if std, err := time.ParseDuration(s); err == nil && std != d {
			t.Errorf("%q is %d, by time.ParseDuration %d", s, d, std)
		}
	})
}

func FuzzFormat(f *testing.F) {
	f.Add(int64(math.MaxInt64))
	f.Add(int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, n int64) {
		if got, err := time.ParseDuration(Format(time.Duration(n))); err != nil || int64(got) != n {
			t.Errorf("%d is %q, read back %d, %v", n, Format(time.Duration(n)), got, err)
		}
	})
}
