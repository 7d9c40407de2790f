// Package vfstest simulates a disk in memory for tests of what uses package vfs: it
// loses power, fails at any call, rots, fills up, and does all that again the same way.
//
// # What it may lose
//
// A Disk keeps apart what its callers see and what is surely on the disk. Crash makes the
// disk that is found when power was lost at that instant: what is sure is there, and a
// Chooser decides about all the rest, thing by thing:
//
//   - each sector written since the last sync of its file holds what is sure or any of the
//     versions written since, whatever becomes of its neighbours in the same write, of what
//     was written before, and of other files;
//   - the size of a file is the sure one or any that it has had since, whatever becomes of
//     the data: so a file may have grown without them;
//   - where it has, a sector reads as zeros or, with Config.Stale, as what a removed file
//     once held there;
//   - each change of a name since the last sync of its directory is there or not, whatever
//     becomes of those before it. A rename within a directory is one change.
//
// A Chooser that always takes the first gives the disk on which nothing unsure has arrived,
// one that takes the last the disk on which all has; Every goes through all of them where
// they are few, Seeded draws from them where they are many.
//
// What was synced is always there, and so is a sector whole: what is written elsewhere in it
// cannot destroy it. A sync that fails drops what it was to write, as Linux does: the pages
// count as clean, are still seen, and are never written unless they are written to again.
//
// Kill makes the disk that is found when only the process died: all is there, and as unsure
// as before.
//
// # How it may fail
//
// Before each call the hook set by Hook is asked; its error is that of the call, which then
// changes nothing, unless it is a Short. The hook may sleep, in a synctest bubble too, and
// may itself make a Crash, to try each instant of a history.
//
// Crash and Kill share the contents of sectors with the disk they are made of and copy only
// what points to them, so one at each step of a history costs little.
package vfstest
