package diskengine

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func sample() *record {
	return &record{
		id: 7, due: -62135596800000, created: 1893456000123, expires: 1893456001000, attempt: 3, dead: true, died: 1893456002000,
		lapsed: true, token: [16]byte{1, 2, 3}, key: "order 42", lastError: "no answer",
		Policy:  engine.Policy{Priority: math.MaxUint32, MaxAttempts: 20, TTR: time.Minute, ExpireAfter: time.Hour, Backoff: []time.Duration{time.Second, 2 * time.Second}},
		Content: engine.Content{Body: []byte("{}"), ContentType: "application/json", Headers: []engine.Header{{Name: "a", Value: "b"}, {}}},
	}
}

func TestRecordKeepsEverything(t *testing.T) {
	plain := &record{id: 8, expires: never}
	apart := &record{id: 9, expires: never, apart: true}
	for _, r := range []*record{sample(), plain, apart} {
		got, err := parseRecord(r.id, r.append(nil))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("wrote %+v, read %+v, %v", r, got, err)
		}
	}
}

func TestRecordCutShortIsCorrupt(t *testing.T) {
	r := sample()
	r.Body, r.apart = nil, true
	whole := r.append(nil)
	for n := range whole {
		if _, err := parseRecord(1, whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were read as a record", n, len(whole))
		}
	}
}

func TestKeysSortAsPositions(t *testing.T) {
	order := []position{
		{never, 0}, {-62135596800000, 5}, {-1, math.MaxUint64}, {0, 0}, {0, 1}, {1893456000000, 3}, {1893456000000, 4}, lastPosition,
	}
	for i := 1; i < len(order); i++ {
		a, b := timeKey(nil, kindDue, 1, order[i-1]), timeKey(nil, kindDue, 1, order[i])
		if bytes.Compare(a, b) >= 0 || !order[i-1].less(order[i]) {
			t.Errorf("%v does not sort before %v", order[i-1], order[i])
		}
		if _, p, err := parseTimeKey(b, kindDue); err != nil || p != order[i] {
			t.Errorf("read %v, %v for %v", p, err, order[i])
		}
	}
	for ms, want := range map[int64]int64{-1: -1, 0: 0, 59_999: 0, 60_000: 1, -60_000: -1, -60_001: -2} {
		if got := minuteOf(ms); got != want {
			t.Errorf("minute of %d is %d, want %d", ms, got, want)
		}
	}
}

// fullRules are settings with all set.
func fullRules() *rules {
	return &rules{
		Settings: engine.Settings{
			Defaults: engine.Terms{
				Priority: new(uint32(0)), MaxAttempts: 3, Backoff: []time.Duration{time.Second, time.Hour}, TTR: time.Minute,
				ExpireAfter: engine.Never, Remember: time.Hour,
			},
			DeadKeep: 24 * time.Hour, DeadMax: 10, MaxPending: 20, InFlight: 30, Rate: 0.5, Burst: 40,
		},
		revision: 7, graves: position{at: never},
	}
}

func TestSettingsComeBack(t *testing.T) {
	for _, want := range []*rules{fullRules(), {revision: 1, graves: position{at: never}}} {
		b := want.append(nil)
		if got, err := parseRules(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("wrote %+v, read %+v, %v", want, got, err)
		}
		for n := range b {
			if _, err := parseRules(b[:n]); err == nil {
				t.Errorf("%d of %d bytes were read as settings", n, len(b))
			}
		}
	}
}

// FuzzDecode feeds every decoder: what is not well formed is an error, and what is
// comes out again as it went in.
func FuzzDecode(f *testing.F) {
	f.Add(sample().append(nil))
	f.Add((&lease{deadline: 5, attempt: 2, remote: true}).append(nil))
	f.Add(keyRef{id: 4, due: 5, expires: true}.append(nil))
	f.Add(keyRef{memory: &memory{4, 5, engine.Expired, 6, 7}}.append(nil))
	f.Add(appendFinished(nil, 300, 4))
	f.Add(fullRules().append(nil))
	f.Add(counts{waiting: 1, leased: 2, dead: 3}.append(nil))
	f.Add([]byte(markerText(1)))
	f.Add(deadNameKey(nil, 1, "key", position{2, 3}))
	f.Add(timeKey(nil, kindDue, 1, position{2, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(what string, err error, again []byte) {
			if err == nil && !bytes.Equal(again, b) {
				t.Errorf("%s %x was read and written as %x", what, b, again)
			}
		}
		if r, err := parseRecord(1, b); err == nil {
			if again, err := parseRecord(1, r.append(nil)); err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("record %+v came back as %+v, %v", r, again, err)
			}
		}
		if l, err := parseLease(1, b); err == nil {
			if again, err := parseLease(1, l.append(nil)); err != nil || *again != *l {
				t.Errorf("lease %+v came back as %+v, %v", l, again, err)
			}
		}
		if c, err := parseCounts(b); err == nil {
			if again, err := parseCounts(c.append(nil)); err != nil || again != c {
				t.Errorf("counts %+v came back as %+v, %v", c, again, err)
			}
		}
		if n, first, err := parseFinished(b); err == nil {
			if m, again, err := parseFinished(appendFinished(nil, n, first)); err != nil || m != n || again != first {
				t.Errorf("%d memories from %d came back as %d from %d, %v", n, first, m, again, err)
			}
		}
		if r, err := parseRules(b); err == nil && r.Rate == r.Rate {
			if again, err := parseRules(r.append(nil)); err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("settings %+v came back as %+v, %v", r, again, err)
			}
		}
		k, err := parseKeyRef(b)
		same("key value", err, k.append(nil))
		version, err := parseMarker(string(b))
		same("marker", err, []byte(markerText(version)))
		q, at, err := parseTimeKey(b, kindDue)
		same("due key", err, timeKey(nil, kindDue, q, at))
		q, minute, err := parseMinuteKey(b)
		same("minute key", err, minuteKey(nil, q, minute))
		q, id, err := parseIDKey(b, kindMessage)
		same("message key", err, idKey(nil, kindMessage, q, id))
		_, _ = parseDeadNameKey(b)
		_, _ = parsePriority(b)
		_, _ = parseTimeValue(b)
		_, _ = parsePosition(b)
		_, _ = parseSum(b)
	})
}
