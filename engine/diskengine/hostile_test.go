package diskengine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// hostileKeys are keys that are as alike as can be: as long as they may be and different in the last
// bytes or the first one alone, beginnings of each other, and numbers of queues before others' keys, as
// the hash of a key has them.
func hostileKeys() (keys []string) {
	stem := strings.Repeat("k", engine.MaxKeyBytes-1)
	for b := range 64 {
		keys = append(keys, stem+string(rune(' '+b)), string(rune(' '+b))+stem)
	}
	for n := 1; n < 128; n++ {
		keys = append(keys, stem[:n], strings.Repeat("\x00", n))
	}
	for num := range uint32(16) {
		prefix := string(binary.LittleEndian.AppendUint32(nil, num))
		keys = append(keys, prefix+"k", prefix+stem[:8])
	}
	keys = append(keys, "...", "-", "/", "%2e", "𝄞", "k\xcc\x81", "ḱ", "K")
	slices.Sort(keys)
	return slices.Compact(keys)
}

// TestHostileKeys pushes alike keys to several queues, half of them to an sstable. Each is found, refused
// again, and cancelled alone.
func TestHostileKeys(t *testing.T) {
	keys, queues := hostileKeys(), []string{"a", "b", "ab"}
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 256 << 10, OnHeap: true}}
	e := p.open(t)
	ids := make(map[engine.Ref]engine.ID)
	for part := range 2 {
		var msgs []engine.Message
		for i := part; i < len(keys); i += 2 {
			for _, queue := range queues {
				msgs = append(msgs, message(queue, keys[i], time.Hour))
			}
		}
		r, err := e.Push(t.Context(), msgs)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range msgs {
			if r[i].Err != nil {
				t.Fatalf("%q: %v", m.Key, r[i].Err)
			}
			ids[engine.Ref{Queue: m.Queue, Key: m.Key}] = r[i].ID
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if part == 0 {
			for _, ref := range []engine.Ref{{Queue: "a", Key: keys[1]}, {Queue: "c", Key: keys[0]}} {
				if _, err := e.Get(t.Context(), ref); !errors.Is(err, engine.ErrNotFound) {
					t.Errorf("%+v, which nobody pushed, is there: %v", ref, err)
				}
			}
		}
	}
	all := func(what string) {
		t.Helper()
		for ref, id := range ids {
			m, err := e.Get(t.Context(), ref)
			if err != nil || m.ID != id || m.Key != ref.Key || m.Queue != ref.Queue {
				t.Errorf("%s: %q of %s is %d %q of %s, not %d: %v", what, ref.Key, ref.Queue, m.ID, m.Key, m.Queue, id, err)
			}
		}
	}
	all("in two sstables")
	if err := e.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	all("in one")
	for ref := range ids {
		if err := pushAll(t, e, engine.Message{Queue: ref.Queue, Key: ref.Key}); !errors.Is(err, engine.ErrExists) {
			t.Errorf("%q of %s again: %v", ref.Key, ref.Queue, err)
		}
	}
	for i, key := range keys { // every third one of one queue
		ref := engine.Ref{Queue: queues[i%3], Key: key}
		if _, err := e.Cancel(t.Context(), []engine.Ref{ref}); err != nil {
			t.Fatal(err)
		}
		delete(ids, ref)
		if _, err := e.Get(t.Context(), ref); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("%q of %s, which was cancelled: %v", ref.Key, ref.Queue, err)
		}
	}
	all("of three queues in two")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Check(d, "data", nil); err != nil || !rep.Sound() {
		t.Fatalf("%v, %+v", err, rep)
	}
	e = p.open(t)
	all("opened again")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKeysCannotBeMadeToCollide has two stores hash the same keys: each has a secret of its own, which
// it keeps, so nobody can make keys beforehand that fall together.
func TestKeysCannotBeMadeToCollide(t *testing.T) {
	secrets := make(map[string]string)
	for _, dir := range []string{"one", "two"} {
		p := place{disktest.New(nil), dir, diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
		var of [2]string
		for i := range of {
			e := p.open(t)
			of[i] = fmt.Sprintf("%x", e.Secret())
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if of[0] != of[1] {
			t.Errorf("the secret of %s changed when it was opened again", dir)
		}
		if other, taken := secrets[of[0]]; taken || strings.Trim(of[0], "0") == "" {
			t.Errorf("%s and %q have the secret %s", dir, other, of[0])
		}
		secrets[of[0]] = dir
	}
}
