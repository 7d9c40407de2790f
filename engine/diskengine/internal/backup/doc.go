// Package backup keeps a copy of a store in a directory: Take brings it to what the store is now,
// Restore makes a store of it, Salvage one of what can be read of it, Check verifies it.
//
// # The idea
//
// A backup holds generations, each a directory of its own that is a whole store, and one small file
// that says which of them is in force. Take makes the next generation beside it, makes that durable,
// and puts the file in place of the one before; then the older generation is removed. So a backup
// that is cut off, by a crash or a full disk, leaves the one before as it was; what it has left is
// not in force, and the next one removes it.
//
// Runs and marks are never changed once they are written. So a generation shares them, by hard
// links, with the generation before, or with the store; where that is on another file system what is
// not in the one before is copied. The log is always copied: its files are written to again.
//
// # What may be relied on
//
//   - When Take has returned, the generation and its name are durable. Nothing of the store is
//     changed.
//   - What the generation in force has not is verified before the next one takes its place, so that a
//     store that is damaged does not take the place of a backup that is sound.
//   - A directory that holds anything else is refused, and so is a backup of another store.
//   - Restore checks the backup first, as package check does, and writes only to a directory that is
//     empty. Until it has ended the store there cannot be opened.
//   - One at a time works on a backup: others get disk.ErrLocked.
//
// The format is in docs/formats/backup.md.
package backup
