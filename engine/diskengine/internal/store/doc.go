// Package store keeps the entries of the disk engine in a directory: messages, remembered keys
// and finished messages. It writes the log, flushes memtables to sstables, merges sstables, and
// lets pushes in as fast as that goes on. What may be done to a message is up to package diskengine, which
// puts entries into the memtables and deletes them there or in sstables. Package store imports
// nothing of it: what it needs from above are functions (Hooks).
//
// # The parts
//
//   - Store has the log (package wal), the memtables (package memtable) and the sstables
//     (source.go). A new one is opened in steps (open.go): Manifest, Open, OpenLog, Start.
//   - Reader reads of the sstables what the steps of a call lack (reader.go, value.go), Cursors
//     what comes next in the order of due times (cursor.go), Walk a page of a list (walk.go).
//   - Compactor works in the background: it seals memtables, lets them rest and flushes them
//     (flush.go), merges sstables (merge.go), and makes durable which sstables and deletion
//     bitmaps count (commit.go). A pin keeps files for a backup (pin.go).
//   - Admission slows pushes when flushes or merges are behind (admit.go). The more haste there
//     is, the fewer pauses background work makes (pace.go).
//   - Space watches the free space and keeps the ballast.
//   - Measured counts what is written, and knows what the disk has not answered.
//
// # Locks
//
// Store.Mu guards all that is in memory, also the engine's part of it. It is held for at most
// StepItems or StepBytes at a time, and for no call of the file system.
//
// Compactor.FlushMu and MergeMu see to it that there is one flush and one merge at a time. Under
// either of them Compactor.mu is taken to change the manifest, and under that Store.Mu. The
// locks of Space and Measured are taken last.
//
// The hooks Rewrite and ForgetIdle take Store.Mu. Next is called under it, and
// Refused either way.
//
// # Goroutines
//
// Start starts three: one flushes, one merges, and one watches the free space. They end when
// Life ends or the store stops, and Compactor.Wait waits for that. The log has goroutines of
// its own.
package store
