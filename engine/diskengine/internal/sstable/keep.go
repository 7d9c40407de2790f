package sstable

// Keep keeps the file in its place, even after Remove, until leave is called once. Then the
// file is closed if Close was called, and removed if Remove was. ok is false if the sstable
// was closed before.
func (r *Table) Keep() (leave func() error, ok bool) {
	if !r.hold() {
		return nil, false
	}
	return r.release, true
}
