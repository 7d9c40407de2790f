// Package outage makes a database fail beneath engines, clients and workers. It checks which
// errors callers get, that no answered call is lost, and that everything recovers by itself
// once the database does.
//
// A Ledger checks a store's promises meanwhile. Every message whose push was answered is
// handled, not before it is due and not by two handlers at once. A message that was acked or
// cancelled does not come back.
//
//	l := outage.NewLedger(t, "orders")
//	l.Work(c, tarry.WorkerConfig{})
//	stop := l.Produce(c, 0, 50*time.Millisecond, time.Hour)
//	l.More(500, 20*time.Second)
//	server.Kill()
//	server.Restart()
//	l.More(500, 20*time.Second)
//	stop()
//	l.Rest(10 * time.Second)
//	l.Settled(c, 5*time.Second)
package outage
