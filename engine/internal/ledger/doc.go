// Package ledger checks a store's promises while the store fails beneath clients and workers.
// Every message whose push was answered is handled, not before it is due and not by two
// handlers at once. A message that was acked or cancelled does not come back.
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
