package diskengine

// What the log holds that is in no run is what a flush has to find room for, before the log gives its
// segments back. So pushes wait while that is too much, however slowly flushes go on: what the log
// takes of the disk is bounded, and a flush has room also where the disk is about to be full. What
// ends messages waits for nothing, and neither do leases.

// aheadSpans is how many spans the backlog may have before pushes wait: twice as many as the log has
// while a window rests.
const aheadSpans = 4

// backlog is how many bytes of the log are in no run yet, without what was said again in it, which no
// flush makes fewer. Engine.mu is held.
func (k *keeper) backlog() int64 {
	return int64(uint64(k.e.log.End())-k.e.replayed) - k.e.said
}

// isAhead reports whether the backlog is too large, with bytes that are to come: more than some spans, or
// than half of what is free beside it, the ballast included, as a merge may take space at the same
// time. A segment of the log is not too much. Engine.mu is held.
func (k *keeper) isAhead(coming int64) bool { return k.ahead(coming) > 1 }

// ahead is what part of the most the backlog is, with bytes that are to come. Engine.mu is held.
func (k *keeper) ahead(coming int64) float64 {
	t, n := &k.e.cfg.tune, k.backlog()+coming
	if t.ahead < 0 || t.still { // nobody would make it smaller
		return 0
	}
	most := int64(t.ahead) * t.span
	if room, ok := k.roomBeside(n); ok {
		most = min(most, room/2)
	}
	return float64(n) / float64(max(most, t.segment))
}

// takes reports whether the disk has room for a push of so many bytes: in the log, and beside the
// backlog in a run. Engine.mu is held.
func (k *keeper) takes(bytes int64) bool {
	if bytes <= k.littleAhead() || k.e.cfg.tune.ahead < 0 || k.e.cfg.tune.still {
		return true
	}
	n := k.backlog() + k.coming.Load() + bytes
	room, ok := k.roomBeside(n)
	return !ok || asRun(n) <= room
}

// asRun is what so many bytes may take in a run, which has indexes.
func asRun(bytes int64) int64 { return bytes + bytes/8 }

// makeRoom has the backlog flushed where a push of so many bytes that has no room has some then. It is
// to be worth a run of its own: not little, and more than is said again for it. And what is free meanwhile
// is to be enough for other pushes. What comes while that goes on is no reason to flush once more: who
// has no room then either comes again. Engine.mu is held.
func (k *keeper) makeRoom(bytes int64) {
	e, n := k.e, k.backlog()
	if k.isWanted() || n <= max(k.littleAhead(), e.retold) {
		return
	}
	taken, _ := e.recent.Memory()
	run := asRun(min(n, taken)) // who was handled is not written
	n = k.coming.Load() + bytes
	if room, ok := e.space.roomLater(n + e.retold); ok && asRun(n)+run <= room && e.space.leaves(run) {
		k.wanted = uint64(e.log.End())
		k.wake()
	}
}

// isWanted reports whether something is to be flushed so that there is room for a push. Engine.mu is
// held.
func (k *keeper) isWanted() bool { return k.wanted > k.e.replayed }

// roomBeside is how much room there is for a flush once the backlog has grown to so many bytes. Engine.mu
// is held.
func (k *keeper) roomBeside(backlog int64) (bytes int64, ok bool) {
	return k.e.space.room(backlog + k.e.said)
}

// littleAhead is how many bytes may be pushed without a look at how large the backlog is: about as
// many as the log grows by between two looks of those who append.
func (k *keeper) littleAhead() int64 { return k.e.cfg.tune.span / 16 }

// let lets a push of so many bytes in, if nobody waits and they are few together with those that
// others were let in with.
func (k *keeper) let(bytes int64) bool {
	if k.full.Load() || k.slowed.Load() {
		return false
	}
	if k.coming.Add(bytes) <= k.littleAhead() {
		return true
	}
	k.came(bytes)
	return false
}

// came says that a push that was let in has ended: its bytes are in the log, or will not be.
func (k *keeper) came(bytes int64) {
	k.coming.Add(-bytes)
	if !k.full.Load() {
		return
	}
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	k.drew()
}
