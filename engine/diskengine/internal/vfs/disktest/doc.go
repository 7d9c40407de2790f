// Package disktest simulates a disk in memory, for tests of code that uses package vfs. The
// disk loses power, fails at any call, rots, fills up, and can do all that again in the same
// way.
//
// # What it may lose
//
// A Disk keeps apart what its callers see and what is surely on the disk. Crash makes the disk
// that is found if the power is lost at that instant: what is sure is there, and a Chooser
// decides about all the rest, thing by thing:
//
//   - each sector written since the last sync of its file has its sure content or any version
//     written since, independently of its neighbours in the same write, of earlier writes and
//     of other files;
//   - the size of a file is the sure one or any that it has had since, independently of the
//     data: so a file may have grown without its data;
//   - then a missing sector reads as zeros or, with Config.Stale, as a sector of a removed
//     file;
//   - each change of a name since the last sync of its directory is there or not,
//     independently of earlier ones. A rename within a directory is one change.
//
// A Chooser that always takes the first gives the disk on which nothing unsure has arrived;
// one that always takes the last gives the disk on which all has. Every goes through all
// choices, if they are few. Seeded chooses at random, if they are many.
//
// Synced data is always there. A sector is always whole: a later write to part of it cannot
// destroy the rest. A sync that fails drops what it should have written, as on Linux: the
// pages count as clean, are still seen, and are not written to the disk unless they are
// changed again.
//
// Kill makes the disk that is found if only the process dies: all is there, and as unsure as
// before.
//
// # How it may fail
//
// Before each call the hook set by Hook is called. Its error becomes that of the call, which
// then changes nothing, unless the error is a Short or a Late. The hook may sleep, in a
// synctest bubble too, and may call Crash itself, to try each instant of a history.
//
// Crash and Kill share the contents of sectors with the disk that they are made from, and copy
// only what points to them. So one at each step of a history costs little.
package disktest
