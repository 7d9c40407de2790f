package disktest

import (
	"maps"
	"path/filepath"
	"slices"
)

// names are the names of a disk: as they are seen, and as they surely are on the disk.
type names struct {
	seen map[string]*inode
	sure map[string]*inode
	late []rename // changes since, in order
}

// rename is a change of names that is there whole or not at all. A nil inode removes the name.
type rename struct {
	names  []string
	inodes []*inode
	synced bool
}

func (r *rename) in(dir string) bool { return filepath.Dir(r.names[0]) == dir }

func (r *rename) apply(m map[string]*inode) {
	for i, name := range r.names {
		if r.inodes[i] == nil {
			delete(m, name)
		} else {
			m[name] = r.inodes[i]
		}
	}
}

// set changes names of one directory.
func (n *names) set(r rename) {
	r.apply(n.seen)
	n.late = append(n.late, r)
}

// sync makes the names in a directory durable.
func (n *names) sync(dir string) {
	for i := range n.late {
		if n.late[i].in(dir) {
			n.late[i].apply(n.sure) // no other directory has these names
			n.late[i].synced = true
		}
	}
	n.late = slices.DeleteFunc(n.late, func(r rename) bool { return r.synced })
}

// settle returns the names that are on the disk after a crash.
func (n *names) settle(c Chooser) map[string]*inode {
	m := maps.Clone(n.sure)
	for _, r := range n.late {
		if c.Choose(2) == 1 {
			r.apply(m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) { // a directory comes before what is in it
		if up, ok := m[filepath.Dir(name)]; !ok || !up.dir {
			delete(m, name)
		}
	}
	return m
}
