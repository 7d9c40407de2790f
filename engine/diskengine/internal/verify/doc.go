// Package verify verifies a store that no process has open: Check changes nothing in it but the file of
// its lock, which it makes where it is missing. Salvage makes a sound store, in a new directory, of what
// can be read.
//
// # What is compared
//
// First each file by itself: the manifest; each sstable it names, all of it, with each value taken
// apart, its key looked for in the index, its place compared with what the value says; the deletion bitmaps;
// the log from the position on from which it is replayed, and each record in it.
//
// Then, if all of that is sound, what is together once the log has been replayed over the sstables
// and their deletion bitmaps: no id lives twice, no key has two live messages of a queue or is remembered
// twice, no id was never given, and what lives belongs to a queue that has a name. What a record
// says of a place in an sstable is compared with what is there.
//
// What does not match is a Finding. An error of the file system is none, nor is a store of a newer
// release: these end the check, and are returned.
//
// # What cannot be noticed
//
// That the end of the log is missing, if the process that wrote it did not close it: as package
// wal says. Report.Torn tells that it was not closed. Bytes that are never read are not compared:
// zeros between the parts of an sstable, what is left in a segment from an earlier use, and segments
// and other files that nothing names; the latter are listed.
//
// # Bounds
//
// Memory: that of the open sstables, 1.9 to 2.7 bytes a message, and an eighth of a byte for each of the
// largest one; about 300 bytes for each message that the log has from the replayed position on; and
// names of queues. A salvage needs 48 bytes for each entry of one sstable that it writes anew, and the
// messages that the log tells of, whole. Each sstable is read once from its start to its end, its indexes
// twice.
package verify
