// Package manifest keeps the one small file that says what a store consists of: which sstables count
// and which of their entries are known to have died, from where on the log is replayed, and the
// numbers that are never used again. Whatever it does not name is not part of the store.
//
// # Why it is hard
//
// A manifest is what the log and the sstables are let go by: what the last one no longer needs is
// removed when it is in force, and not before. So Write returns nil only when the new one is
// durable under its name: it is written to a file of its own, synced, renamed in place of the one
// before, and the directory synced. Until then the one before is there, whole. A crash leaves
// one or the other.
//
// When renaming or the sync after it fails, it is not known which of the two a crash would leave.
// Then the Manifest has failed: what either needs must stay, and the store is opened anew, by
// which what is found is made durable before anything is built on it.
//
// A manifest that cannot be read was durable once: opening is refused, with file and offset, and
// never goes on with an older one, whose sstables and log may be gone.
//
// The format is in docs/formats/manifest.md.
package manifest
