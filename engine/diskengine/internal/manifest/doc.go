// Package manifest keeps the one file that says what a store consists of: which sstables count,
// which of their entries were deleted, from where the log is replayed, and which numbers must
// not be used again. A file that it does not name is not part of the store.
//
// # Why it is hard
//
// Parts of the log and sstables are removed as soon as the manifest in force no longer needs
// them. So Write returns nil only when the new manifest is durable under its name: it is
// written to a file of its own and synced, the file replaces the old one by a rename, and the
// directory is synced. Until then the old manifest is there, whole. A crash leaves one or the
// other.
//
// If the rename or the sync after it fails, it is not known which of the two a crash would
// leave. Then the Manifest has failed: files that either needs must stay, and the store must
// be opened again. Opening makes the manifest that it finds durable before anything is built
// on it.
//
// A manifest that cannot be read was durable once. Opening fails with file and offset. It
// never goes on with an older manifest: its sstables and log may be gone. A salvage takes what
// can be read: the head is written twice, each deletion bitmap has a checksum, and none of them
// shares a sector.
//
// The format is in docs/formats/manifest.md.
package manifest
