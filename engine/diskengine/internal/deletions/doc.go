// Package deletions keeps deletion bitmaps of sstables in files. A flush or merge writes one,
// so that the log before it is no longer needed.
//
// Such a file is written once and never changed. It says which entries of some sstables were
// deleted. The caller's manifest says for each sstable which file counts. An sstable in a file
// may have been merged away by now, or have a newer deletion bitmap: it is passed over.
//
// # What may be relied on
//
//   - When Write has returned, the file is durable. Before, it may be there or not, and hold
//     anything; Sweep removes files that the manifest does not name.
//   - Everything that is read is checked: a mismatch is a *vfs.DamageError that names file and
//     offset. An error of the file system is not damage, and is returned as it is.
//   - Memory: the deletion bitmap of one sstable at a time, at most an eighth of a byte for
//     each entry.
//
// There are no locks and no goroutines here. An entry that is deleted while a file is written
// may be in the file or not.
//
// The format is in docs/formats/deletions.md.
package deletions
