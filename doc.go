// Package tarry delivers messages later.
//
// Cancel the order in 30 minutes unless it is paid; rate the ride five stars after
// 48 hours unless the rider has; tell the merchant, and if he does not answer,
// again after 15 s, 30 s, 3 min; close the connection that has sent no heartbeat
// for 30 s.
//
//	var Unpaid = tarry.NewTopic[Order]("order.unpaid")
//
//	c, err := tarry.Open(ctx, "disk:tarry-data", nil) // import _ ".../engine/diskengine"
//	defer c.Close()
//
//	_, err = Unpaid.Push(ctx, c, Order{"42"}, tarry.In(30*time.Minute), tarry.Key("42"))
//	err = Unpaid.Cancel(ctx, c, tarry.ByKey("42")) // it was paid
//
//	w := tarry.NewWorker(c, nil)
//	tarry.Handle(w, Unpaid, func(ctx context.Context, m *tarry.Message[Order]) error {
//		return cancelOrder(ctx, m.Body.ID) // nil acks; an error retries with backoff
//	})
//	err = w.Run(ctx) // until ctx ends, then drains
//
// A message is scheduled until it is due, then ready, then leased to a worker, and
// gone once that has acked it; a failed one comes back after its backoff, and is
// dead when its attempts are used up. A message never starts before its due time,
// and is handled at least once: twice only when a lease ran out or a process died
// between handling and ack.
//
// Messages are kept by an engine: package engine/memengine, engine/diskengine,
// engine/redisengine, engine/pgengine, engine/mysqlengine, engine/rabbitengine, or a
// tarry server over HTTP by engine/httpengine. The code that uses them is the same.
//
// A key is the caller's own name for a message, unique among the live messages of its
// queue, so that a repeated push makes no second one, and anybody can cancel, reschedule
// or find the message without having kept its id.
//
// Calls of a Client name a message by its queue too: ByKey("42").Of("order.unpaid").
// Calls on many messages answer with one result each, whose Err is that message's own;
// the error beside them is for the call as a whole. JoinErrors makes one error of all.
//
// What went wrong for many is put right for many: a Filter chooses messages of a queue,
// such as the dead ones of the last hour whose error was a timeout, and RedriveWhere,
// DropWhere, CancelWhere and RescheduleWhere change them.
//
// In tests, open "mem:" inside a testing/synctest bubble and let time.Sleep pass
// the 48 hours.
//
// Where to look: Client, Topic and Worker are the calls, docs/semantics.md says what
// each does in each state, docs/architecture.md how it works inside, and
// docs/engines/writing.md how an engine is written.
package tarry
