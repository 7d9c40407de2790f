package sstable

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestVerifyValues: the index of keys is compared with the keys that the values tell.
func TestVerifyValues(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(15, 15)), 300)
	r := written(t, d, 1, cfg, all)
	keyed := slices.IndexFunc(all, func(x thing) bool { return x.key != Key{} })
	bare := slices.IndexFunc(all, func(x thing) bool { return x.key == Key{} })
	verify := func(change func(e Entry, k *Key) error) error {
		return r.VerifyValues(nil, func(e Entry) (Key, error) {
			k := all[e.Pos].key
			err := change(e, &k)
			return k, err
		})
	}
	seen := uint32(0)
	must(t, verify(func(e Entry, _ *Key) error {
		if e.Pos != seen || e.Place != all[e.Pos].Place || string(e.Value) != string(all[e.Pos].value) {
			t.Errorf("entry %d is %v", e.Pos, e)
		}
		seen++
		return nil
	}))
	if seen != r.Len() {
		t.Errorf("%d of %d were seen", seen, r.Len())
	}
	others := "keys that lead to other entries than those that have them"
	for what, c := range map[string]struct {
		reason string
		change func(e Entry, k *Key) error
	}{
		"an entry that lost its key": {others, func(e Entry, k *Key) error {
			if int(e.Pos) == keyed {
				*k = Key{}
			}
			return nil
		}},
		"an entry that got a key": {others, func(e Entry, k *Key) error {
			if int(e.Pos) == bare {
				*k = keyOf(1000)
			}
			return nil
		}},
		"an entry with another key": {others, func(e Entry, k *Key) error {
			if int(e.Pos) == keyed {
				k[15]++
			}
			return nil
		}},
		"two entries with each other's keys": {others, func(e Entry, k *Key) error {
			if int(e.Pos) == keyed {
				*k = all[bare].key
			} else if int(e.Pos) == bare {
				*k = all[keyed].key
			}
			return nil
		}},
		"a value that cannot be read": {"of the test", func(e Entry, _ *Key) error {
			if int(e.Pos) == bare {
				return errTest
			}
			return nil
		}},
	} {
		if err := verify(c.change); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, r.Close())
}

// TestEach: ids and keys of several sstables come in order, each with its place.
func TestEach(t *testing.T) {
	d, cfg := newDisk(t), small()
	type at struct {
		id    uint64
		key   Key
		table int
		pos   uint32
	}
	var tables []*Table
	var ids, keys []at
	for k := range 3 {
		all := things(rand.New(rand.NewPCG(16, uint64(k))), 400*k) // the same ids and keys in each
		tables = append(tables, written(t, d, uint64(k+1), cfg, all))
		for pos, x := range all {
			ids = append(ids, at{id: x.ID, table: k, pos: uint32(pos)})
			if x.key != (Key{}) {
				keys = append(keys, at{key: x.key, table: k, pos: uint32(pos)})
			}
		}
	}
	killRange(tables[1], 0, 100)
	place := func(a, b at) int { return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.pos, b.pos)) }
	sorted := func(got []at, what func(at) string) []at {
		if !slices.IsSortedFunc(got, func(a, b at) int { return cmp.Compare(what(a), what(b)) }) {
			t.Error("they do not come in order")
		}
		slices.SortFunc(got, place)
		return got
	}
	var got []at
	must(t, EachID(tables, func(id uint64, k int, pos uint32) error {
		got = append(got, at{id: id, table: k, pos: pos})
		return nil
	}))
	if !slices.Equal(sorted(got, func(a at) string { return string(be.AppendUint64(nil, a.id)) }), ids) {
		t.Error("other ids")
	}
	got = nil
	must(t, EachKey(tables, func(key Key, k int, pos uint32) error {
		got = append(got, at{key: key, table: k, pos: pos})
		return nil
	}))
	if !slices.Equal(sorted(got, func(a at) string { return string(a.key[:]) }), keys) {
		t.Error("other keys")
	}
	if err := EachID(tables, func(uint64, int, uint32) error { return errTest }); !errors.Is(err, errTest) {
		t.Error(err)
	}
	for _, r := range tables {
		must(t, r.Close())
	}
	if d.Handles() > 0 {
		t.Errorf("%d files are open", d.Handles())
	}
}
