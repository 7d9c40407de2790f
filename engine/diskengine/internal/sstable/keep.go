package sstable

// Keep keeps the file in its place, also after Remove, until what is returned is called, once: then
// it is closed, and removed if it was to be. ok is false if the run was closed before.
func (r *Run) Keep() (leave func() error, ok bool) {
	if !r.hold() {
		return nil, false
	}
	return r.release, true
}
