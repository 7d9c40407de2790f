// Package deletions keeps deletion bitmaps of sstables in files. A flush or merge writes one, so that the log
// before it is no longer needed.
//
// Such a file is written once and never changed. It holds, of each sstable it was given, all that were
// dead in it by then. The caller's manifest says of each sstable which file counts: one of those that
// a file holds may be merged away by now, or have newer deletion bitmaps, and is passed over.
//
// # What may be relied on
//
//   - When Write has returned, the file is durable. Before, it is there or not, and may hold
//     anything; Sweep removes those that the manifest does not name.
//   - Nothing is served that was not checked: what does not match is a *vfs.DamageError that
//     names file and offset. An error of the file system is not damage, and is returned as it is.
//   - Memory: the deletion bitmaps of one sstable at a time, an eighth of a byte an entry at most.
//
// There are no locks and no goroutines here. Entries may die while it is written: one that
// dies meanwhile is in the file or not.
//
// The format is in docs/formats/deletions.md.
package deletions
