// Package verify verifies a store that no process has open. Check changes nothing in it except
// the file of its lock, which it makes if it is missing. Salvage makes a sound store, in a new
// directory, of what can be read.
//
// # What is compared
//
// First each file by itself: the manifest; each sstable that it names, whole, and its deletion
// bitmap; the log from the position from which it is replayed, and each record in it. Each
// value of an sstable is decoded, its key looked up in the index, and its place compared with
// the value.
//
// Then, if all of that is sound, the files together, once the log has been replayed over the
// sstables and their deletion bitmaps. No id may be alive twice. No key of a queue may have
// two live messages or be remembered twice. Each id must have been given, and each live entry
// belong to a queue with a name. A place in an sstable that a record names is compared with
// the entry there.
//
// A mismatch is a Finding. An error of the file system is not, nor is a store of a newer
// release: these end the check, and are returned.
//
// # What cannot be noticed
//
// If the process did not close the log, a missing end of the log cannot be noticed, as package
// wal says; Report.Torn tells that it was not closed. Bytes that are never read are not
// compared: zeros between the parts of an sstable, old bytes in a segment, and files that
// nothing names. Such files other than segments are listed.
//
// # Bounds
//
// Memory: the open sstables take 1.9 to 2.7 bytes for each message, and the largest one an
// eighth of a byte more. Each message in the log from the replayed position on takes about 300
// bytes; names of queues take their length. A salvage also needs 48 bytes for each entry of
// the sstable that it writes, and the whole messages of the log. Each sstable is read once
// from start to end, its indexes twice.
package verify
