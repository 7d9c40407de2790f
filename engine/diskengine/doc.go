// Package diskengine keeps messages on the local disk: the embedded, durable
// default. It needs no other service, and one process at a time opens a
// directory.
//
// # The idea
//
// Everything lies in one Pebble store, a log-structured merge tree. A push is one
// batch: the message, its place in the order of due times, its key, its queue's
// counters. The batch is applied under the queue's lock and synced outside of it,
// so that all who wait at the same time share one fsync.
//
// What is due soon also stands in memory, for each queue apart (type near): a
// timer.Wheel for what is not yet due and a heap by (priority, due, id) for what
// is. A position in the order of due times, loadedTo, divides the two worlds:
//
//	every waiting message below loadedTo is in memory, none at or above it is.
//
// It lies some minutes ahead of now. A push below it goes to memory under the same
// lock, one beyond only to disk; when the time comes near a loader reads that in
// chunks. When memory is full loadedTo is lowered and the rest forgotten. So memory
// does not grow with the backlog, and loadedTo bounds only what is read: whether a
// message may go out is always decided by due <= now.
//
// # Why it is hard
//
//   - The loader reads without the lock, while others push and cancel. They leave
//     a journal of what they changed at or above loadedTo, and the loader plays
//     it over what it read before it moves loadedTo: position by position, since
//     a message may have gone to where memory has it already.
//   - Removed entries leave tombstones, and a scan from the start of a queue would
//     walk them all. So each queue has a persisted mark at or below every due
//     entry. It is lowered in the batch that puts something below it and raised
//     now and then in the background.
//   - Leased messages have no place in due order: they stand in a range of their
//     own, so that one long lease holds no mark down. The table of leases in
//     memory is what counts; the range is read when the engine opens.
//   - Leases end by the clock, however many at once. They are ended in chunks; a
//     call that meets a message whose lease is over ends that one first.
//   - A read may fail once, or what is read be damaged. Damage is passed over, so
//     that one message stops no other; a failed read fails the call.
//   - An answer may rest on what another call wrote and has not synced. Each queue
//     knows the last batch applied to it and the engine knows the last one synced;
//     who sees more than is synced waits.
//
// # Rules
//
// A queue's fields are touched under its lock only. Who needs several queues at once
// locks them in the order of their numbers; who does not takes the locks that are
// free and waits for none while holding another. What has to be read from due order
// is read while no lock but the queue's own is held. A transition looks (memory, Pebble), builds
// a batch, applies it and then changes memory, so that one which fails on the way
// has changed nothing; nothing waits for a sync under a lock, and what grows with
// the backlog is read outside of it. Whoever gets a queue's lock may find it gone:
// an empty queue is forgotten, and who puts something into it makes a new one. A batch that cannot be applied or synced fails the engine for good:
// memory may then differ from the disk, and only opening it again helps.
//
// The formats are in docs/formats/disk.md.
package diskengine
