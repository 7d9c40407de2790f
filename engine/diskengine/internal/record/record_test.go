package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// written is a record that can be written.
type written interface{ Append(b []byte) []byte }

// list is an Applier that keeps what it is given.
type list []written

func (l *list) Put(p *Put) error             { *l = append(*l, new(*p)); return nil }
func (l *list) Move(m *Move) error           { *l = append(*l, new(*m)); return nil }
func (l *list) Lease(x *Lease) error         { *l = append(*l, new(*x)); return nil }
func (l *list) Gone(g *Gone) error           { *l = append(*l, new(*g)); return nil }
func (l *list) Finish(f *Finish) error       { *l = append(*l, new(*f)); return nil }
func (l *list) List(x *List) error           { *l = append(*l, new(*x)); return nil }
func (l *list) Name(n *Name) error           { *l = append(*l, new(*n)); return nil }
func (l *list) Configure(c *Configure) error { *l = append(*l, new(*c)); return nil }
func (l *list) Pause(p *Pause) error         { *l = append(*l, new(*p)); return nil }

func group(records ...written) (b []byte) {
	for _, r := range records {
		b = r.Append(b)
	}
	return b
}

const now = 1893456000123

var nonce = codec.Nonce{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

var failures = codec.AppendFailure(nil, &engine.Failure{At: time.UnixMilli(1), Attempt: 1, Worker: "w", Reason: "no"})

var listed = HistoryEntry{Due: 1, Created: 0, Ending: engine.Acked, Attempt: 2, Started: 3, Worker: "w", Failures: failures}

// samples has each kind of record, and the bytes of each as docs/formats/records.md has them.
var samples = []struct {
	record written
	bytes  string
}{
	{&Put{ID: 300, Queue: 1, New: true, Key: []byte("k"), State: State{Due: 5, Expires: Never}, Content: []byte("c")}, "01ac0201016b000a0163"},
	{&Put{ID: 1, Queue: 2, From: Spot{Table: 7, At: 128}, State: State{Due: -1, Expires: 1, Attempt: 3}}, "02010780010200030104" + "0300"},
	{&Move{ID: 1, State: State{Due: 0, Expires: Never, Dead: true, Died: 1, Lapsed: true, Nonce: nonce, Failures: failures}},
		"03011c00020102030405060708090a0b0c0d0e0f10" + "12" + "0000000000000001" + "00000001" + "0177" + "00026e6f"},
	{&Lease{ID: 1, Deadline: 64, Attempt: 1}, "0401008001" + "0100"},
	{&Lease{ID: 1, From: Spot{Table: 1}, Deadline: 1, Attempt: 2, Remote: true, Nonce: nonce}, "04010100" + "0202" + "01" + "0102030405060708090a0b0c0d0e0f10"},
	{&Lease{ID: 1, Deadline: 64, Attempt: 1, Lapsed: true, Worker: "w"}, "0401008001" + "0106" + "0177"},
	{&Gone{ID: 1}, "070100"},
	{&Finish{ID: 1, Queue: 2, Key: []byte("k"), Due: 1, Ending: engine.Cancelled, Ended: 2, Forgotten: 5}, "080102016b0202" + "0406"},
	{&List{ID: 1, Queue: 2, Key: []byte("k"), Ended: 64, Value: listed.Append(nil)},
		"0e0102016b8001" + "0201c1" + "02" + "040177" + "12" + "0000000000000001" + "00000001" + "0177" + "00026e6f"},
	{&Gone{ID: 1, From: Spot{Table: 1, At: 2}, Listed: true}, "0f010102"},
	{&Name{Queue: 1, Name: []byte("orders")}, "0901066f7264657273"},
	{&Configure{Queue: 1, Revision: 2, Settings: engine.Settings{DeadMax: 3, Rate: 1}}, "0a01020000000000" + "00000600" + "000000" + "3ff0000000000000" + "00"},
	{&Pause{Queue: 1, Until: 1}, "0b0102"},
}

// TestFormat: bytes do not change by accident.
func TestFormat(t *testing.T) {
	var all []written
	for _, s := range samples {
		if got := hex.EncodeToString(s.record.Append(nil)); got != s.bytes {
			t.Errorf("%T %+v is %s, want %s", s.record, s.record, got, s.bytes)
		}
		all = append(all, s.record)
	}
	var got list
	if err := Each(Group, group(all...), &got); err != nil {
		t.Fatal(err)
	}
	same(t, got, all)
}

func same(t testing.TB, got list, want []written) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records came back, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i].Append(nil), want[i].Append(nil)) || reflect.TypeOf(got[i]) != reflect.TypeOf(want[i]) {
			t.Errorf("record %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestSizes: what most logs are made of is small. The log itself adds 2 or 3 bytes.
func TestSizes(t *testing.T) {
	c := Content{Created: now, Policy: engine.Policy{Priority: 1024, MaxAttempts: 20, TTR: time.Minute}, Content: engine.Content{Body: make([]byte, 200)}}
	push := &Put{ID: 100e6, Queue: 1, New: true, Key: []byte("order-1234567"), State: State{Due: now + 48*3600e3, Expires: Never}, Content: c.Append(nil)}
	for _, s := range []struct {
		name   string
		record written
		most   int
	}{
		{"push of 200 bytes", push, 239},
		{"ack", &Gone{ID: 100e6}, 6},
		{"ack out of an sstable", &Gone{ID: 100e6, From: Spot{Table: 3000, At: 2e6}}, 10},
		{"lease", &Lease{ID: 100e6, Deadline: now, Attempt: 1}, 14},
		{"lease of another process", &Lease{ID: 100e6, Deadline: now, Attempt: 1, Remote: true}, 30},
		{"retry", &Move{ID: 100e6, State: State{Due: now, Attempt: 1, Expires: Never}}, 13},
	} {
		if n := len(s.record.Append(nil)); n > s.most {
			t.Errorf("%s: %d bytes, at most %d", s.name, n, s.most)
		}
	}
}

func anyBytes(most int) *rapid.Generator[[]byte] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, most), func(b []byte) []byte {
		if len(b) == 0 {
			return nil
		}
		return b
	})
}

func anyState(t *rapid.T) State {
	s := State{Due: rapid.Int64().Draw(t, "due"), Expires: rapid.Int64().Draw(t, "expires"), Attempt: rapid.Uint32().Draw(t, "attempt")}
	for range rapid.IntRange(0, engine.MaxFailures).Draw(t, "failures") {
		s.Failures = codec.AppendFailure(s.Failures, &engine.Failure{Attempt: s.Attempt, Worker: "w", Reason: string(anyBytes(20).Draw(t, "reason"))})
	}
	if s.Dead = rapid.Bool().Draw(t, "dead"); s.Dead {
		s.Died = rapid.Int64().Draw(t, "died")
	}
	if s.Lapsed = rapid.Bool().Draw(t, "lapsed"); s.Lapsed {
		s.Nonce = nonce
	}
	return s
}

func anySpot(t *rapid.T) (s Spot) {
	if s.Table = rapid.Uint64().Draw(t, "run"); s.Table != 0 {
		s.At = rapid.Uint32().Draw(t, "at")
	}
	return s
}

func anyRecord(t *rapid.T) written {
	id := engine.ID(rapid.Uint64Min(1).Draw(t, "id"))
	queue := rapid.Uint32Min(1).Draw(t, "queue")
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		p := &Put{ID: id, Queue: queue, New: rapid.Bool().Draw(t, "new"), Key: anyBytes(20).Draw(t, "key"), State: anyState(t), Content: anyBytes(300).Draw(t, "content")}
		if !p.New {
			p.From = anySpot(t)
		}
		return p
	case 1:
		return &Move{ID: id, State: anyState(t)}
	case 2:
		l := &Lease{ID: id, From: anySpot(t), Deadline: rapid.Int64().Draw(t, "deadline"), Attempt: rapid.Uint32Min(1).Draw(t, "attempt"), Remote: rapid.Bool().Draw(t, "remote"),
			Lapsed: rapid.Bool().Draw(t, "lapsed"), Worker: rapid.SampledFrom([]string{"", "w", "host:42"}).Draw(t, "worker")}
		if l.Remote {
			l.Nonce = nonce
		}
		return l
	case 3:
		return &Gone{ID: id, From: anySpot(t), Listed: rapid.Bool().Draw(t, "listed")}
	case 4:
		return &Finish{ID: id, Queue: queue, Key: append([]byte("k"), anyBytes(20).Draw(t, "key")...), Due: rapid.Int64().Draw(t, "due"),
			Ending: rapid.SampledFrom([]engine.Ending{engine.Acked, engine.Cancelled, engine.Expired}).Draw(t, "ending"),
			Ended:  rapid.Int64().Draw(t, "ended"), Forgotten: rapid.Int64().Draw(t, "forgotten")}
	case 5:
		return &Name{Queue: queue, Name: anyBytes(200).Draw(t, "name")}
	case 6:
		return &Configure{Queue: queue, Revision: rapid.Uint64().Draw(t, "revision"), Settings: engine.Settings{
			Defaults: engine.Terms{Priority: rapid.Ptr(rapid.Uint32(), true).Draw(t, "priority"), ExpireAfter: engine.Never, Backoff: []time.Duration{1, math.MaxInt64}},
			DeadMax:  rapid.Int64().Draw(t, "dead max"), Rate: 0.5}}
	case 7:
		p := HistoryEntry{Due: rapid.Int64().Draw(t, "due"), Created: rapid.Int64().Draw(t, "created"), Attempt: rapid.Uint32().Draw(t, "attempt"),
			Ending: rapid.SampledFrom([]engine.Ending{engine.Acked, engine.Cancelled, engine.Expired}).Draw(t, "ending"), Failures: anyState(t).Failures}
		if rapid.Bool().Draw(t, "leased") {
			p.Started, p.Worker = rapid.Int64().Draw(t, "started"), rapid.SampledFrom([]string{"", "w"}).Draw(t, "worker")
		}
		return &List{ID: id, Queue: queue, Key: anyBytes(20).Draw(t, "key"), Ended: rapid.Int64().Draw(t, "ended"), Value: p.Append(nil)}
	default:
		return &Pause{Queue: queue, Until: rapid.Int64().Draw(t, "until")}
	}
}

// TestRoundTrip: what is written is read, field by field, and a group that is cut short
// anywhere but between two records is malformed.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []written
		ends := map[int]bool{0: true}
		var b []byte
		for range rapid.IntRange(1, 6).Draw(t, "records") {
			r := anyRecord(t)
			all, b = append(all, r), r.Append(b)
			ends[len(b)] = true
		}
		var got list
		if err := Each(Group, b, &got); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(all) {
			t.Fatalf("%d records, want %d", len(got), len(all))
		}
		for i, r := range all {
			if !reflect.DeepEqual(plain(got[i]), plain(r)) {
				t.Fatalf("%T came back as %+v, want %+v", r, got[i], r)
			}
		}
		n := rapid.IntRange(0, len(b)).Draw(t, "cut")
		if err := Each(Group, b[:n], new(list)); (err == nil) != ends[n] {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	})
}

// plain has empty slices as nil.
func plain(r written) any {
	switch r := r.(type) {
	case *Put:
		p := *r
		p.Key, p.Content, p.Failures = bytes.Clone(p.Key), bytes.Clone(p.Content), bytes.Clone(p.Failures)
		for _, b := range []*[]byte{&p.Key, &p.Content, &p.Failures} {
			if len(*b) == 0 {
				*b = nil
			}
		}
		return p
	case *List:
		l := *r
		l.Key = append([]byte(nil), l.Key...)
		return l
	case *Name:
		return string(r.Name)
	}
	return r
}

func TestContent(t *testing.T) {
	policy := engine.Policy{Priority: 1, MaxAttempts: 20, TTR: time.Minute, Backoff: []time.Duration{time.Second}}
	for _, c := range []Content{
		{Policy: policy},
		{Created: now, Policy: policy, Content: engine.Content{Body: []byte("{}"), ContentType: "application/json", Headers: []engine.Header{{Name: "a", Value: "b"}}}},
	} {
		b := c.Append(nil)
		if got, err := ParseContent(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("wrote %+v, read %+v, %v", c, got, err)
		}
		for n := range len(b) - len(c.Body) {
			if _, err := ParseContent(b[:n]); !errors.Is(err, codec.ErrMalformed) {
				t.Errorf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	}
}

func TestNewerKinds(t *testing.T) {
	if err := Each(Group+1, nil, new(list)); !errors.Is(err, vfs.ErrVersion) {
		t.Errorf("another kind of entry: %v", err)
	}
	var got list
	if err := Each(Group, (&Gone{ID: 1}).Append([]byte(nil)), &got); err != nil || len(got) != 1 {
		t.Fatal(err, got)
	}
	if err := Each(Group, []byte{kindEnd}, new(list)); !errors.Is(err, vfs.ErrVersion) {
		t.Errorf("another kind of record: %v", err)
	}
}

// TestRefused: what no release writes is malformed.
func TestRefused(t *testing.T) {
	for name, r := range map[string]written{
		"id 0":      &Gone{},
		"queue 0":   &Pause{},
		"attempt 0": &Lease{ID: 1},
		"no key":    &Finish{ID: 1, Queue: 1, Ending: engine.Acked},
		"no ending": &Finish{ID: 1, Queue: 1, Key: []byte("k")},
		"not ended": &List{ID: 1, Queue: 1, Value: new(HistoryEntry).Append(nil)},
	} {
		if err := Each(Group, r.Append(nil), new(list)); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEach: nothing that is read makes a panic, or much more of itself than it is, and what is
// read well says the same when it is written again.
func FuzzEach(f *testing.F) {
	for _, s := range samples {
		f.Add(s.record.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got list
		err := Each(Group, b, &got)
		if err != nil {
			return
		}
		var again list
		if err := Each(Group, group(got...), &again); err != nil {
			t.Fatal(err)
		}
		same(t, again, got)
	})
}

// FuzzContent is FuzzEach for contents.
func FuzzContent(f *testing.F) {
	c := Content{Created: now, Policy: engine.Policy{Priority: 1, Backoff: []time.Duration{1}}, Content: engine.Content{Body: []byte("b"), Headers: []engine.Header{{Name: "a"}}}}
	f.Add(c.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseContent(b)
		if err != nil {
			return
		}
		if again, err := ParseContent(c.Append(nil)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v came back as %+v, %v", c, again, err)
		}
	})
}
