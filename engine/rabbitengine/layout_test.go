package rabbitengine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine"
)

const queueChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

func names() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune(queueChars)), 1, engine.MaxQueueBytes, engine.MaxQueueBytes)
}

func TestWordsAreOneWordEachAndDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := names().Draw(t, "a"), names().Draw(t, "b")
		if w := word(a); strings.ContainsAny(w, ".*#") || w == "" || a != b && w == word(b) {
			t.Fatalf("%q is %q, %q is %q", a, w, b, word(b))
		}
	})
	if word("a.b") == word("a:b") && engine.CheckQueue("", "a:b") == nil {
		t.Error("two queues have the same word")
	}
}

// walk goes the way of a message as it is declared, and tells how long it waits in all.
func walk(t *rapid.T, l *layout, r route) (took time.Duration, to string) {
	words := strings.Split(r.key, ".")
	declared := make(map[string]digitDelay)
	for w := range digitDelays(r.units) {
		declared[binding(w.digit, w.value)] = w
	}
	exchanges := make(map[string]int)
	for n := range l.digits() {
		exchanges[l.digit(n)] = n
	}
	for at := r.exchange; at != l.deliver(); {
		n, ok := exchanges[at]
		if !ok || n >= len(words)-1 {
			t.Fatalf("%s is not declared, or finds no digit in %s", at, r.key)
		}
		if words[n] != "0" {
			w, ok := declared[strings.Repeat("*.", n)+words[n]+".#"]
			if !ok {
				t.Fatalf("%s is not declared for %s", at, r.key)
			}
			took += w.units() * l.unit
		}
		at = l.below(n)
	}
	return took, words[len(words)-1]
}

func TestTheWayTakesAsLongAsTheDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, err := (&Config{Unit: rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, time.Hour}).Draw(t, "unit")}).complete()
		if err != nil {
			t.Fatal(err)
		}
		l := &layout{prefix: cfg.Prefix, unit: cfg.Unit}
		delay := time.Duration(rapid.Int64Range(-1, int64(l.longest())).Draw(t, "delay"))
		queue := names().Draw(t, "queue")
		r, says := l.to(queue, delay)
		waits, to := walk(t, l, r)
		if waits != says || waits < delay || waits >= max(0, delay)+l.unit || to != word(queue) || len(r.key) > shortMost {
			t.Fatalf("%s by %+v (%d bytes) takes %s, said are %s", delay, r, len(r.key), waits, says)
		}
	})
}

func TestLongestDelayIsTenYears(t *testing.T) {
	for _, unit := range []time.Duration{time.Millisecond, 10 * time.Millisecond, DefaultUnit, time.Second, time.Hour} {
		l := &layout{unit: unit}
		if longest := l.longest(); longest != maxSpan || l.most()>>(digitBits*l.digits()) != 0 {
			t.Errorf("unit %s: %d digits, up to %s", unit, l.digits(), longest)
		}
	}
}

func TestFixedDelaysAreNeverShorter(t *testing.T) {
	l := &layout{prefix: "p", delays: []time.Duration{time.Second, time.Minute, time.Hour}}
	for delay, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: time.Second, time.Second: time.Second, time.Second + 2*time.Millisecond: time.Minute, time.Hour: time.Hour, 2 * time.Hour: time.Hour,
	} {
		if r, d := l.to("q", delay); d != want || want > 0 && r.exchange != l.fixed(want) {
			t.Errorf("%s goes by %+v, %s", delay, r, d)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for i, c := range []Config{
		{Prefix: "a.b"}, {Prefix: strings.Repeat("a", 21)}, {Unit: time.Microsecond}, {Unit: 1500 * time.Microsecond}, {Unit: 2 * time.Hour},
		{Unit: -1}, {Delays: []time.Duration{0}},
		{Delays: []time.Duration{time.Second, time.Second}}, {Delays: make([]time.Duration, maxDelays+1)}, {Delays: []time.Duration{maxFixed + time.Millisecond}}, {Queues: "stream"},
	} {
		if _, err := New("amqp://127.0.0.1:1", &c); engine.Code(err) != "invalid" {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{"3.10.8": true, "3.9.99": false, "4.0.0": true, "3.13.1+x": true, "": false, "x.y": false} {
		if atLeast(version, 3, 10) != want {
			t.Error(version, fmt.Sprint(!want))
		}
	}
}

// A due time is rounded up to the millisecond, the units of a relative delay are not.
func TestRelativeDelaysTakeNoMoreUnits(t *testing.T) {
	now := time.Now().Truncate(time.Second).Add(300 * time.Microsecond)
	m := &engine.Message{Due: engine.When{In: time.Second}}
	info := &engine.Info{Due: time.UnixMilli(m.Due.Resolve(now))}
	l := &layout{prefix: "t", unit: 100 * time.Millisecond}
	if _, d := l.to("q", delayOf(m, info)); d != time.Second {
		t.Errorf("a second takes %v", d)
	}
}
