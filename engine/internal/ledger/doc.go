// Package ledger keeps what a store has promised and what became of it, while the store
// fails beneath clients and workers: what was answered is handled, not before its due and
// by one at a time, and what was acked or cancelled does not come back.
//
//	l := ledger.New(t, "orders")
//	l.Work(c, tarry.WorkerConfig{})
//	stop := l.Produce(c, 0, 50*time.Millisecond, time.Hour)
//	l.More(500, 20*time.Second)
//	server.Kill()
//	server.Restart()
//	l.More(500, 20*time.Second)
//	stop()
//	l.Rest(10 * time.Second)
//	l.Settled(c, 5*time.Second)
package ledger
