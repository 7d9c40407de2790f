package sstable

// Keep keeps the file in its place, also after Remove, until what is returned is called, once: then
// it is closed, and removed if it was to be. ok is false if the sstable was closed before.
func (r *Table) Keep() (leave func() error, ok bool) {
	if !r.hold() {
		return nil, false
	}
	return r.release, true
}
