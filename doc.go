// Package tarry delivers messages later.
//
// Cancel the order in 30 minutes unless it is paid; rate the ride five stars after 48 hours
// unless the rider has; notify the merchant, and retry after 15 s, 30 s and 3 min until the
// callback is answered; close the connection that has sent no heartbeat for 30 s.
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
// A message is scheduled until it is due, then ready, then leased to a worker, and gone
// once the worker acks it. A failed message comes back after its backoff, and is dead when
// its attempts are used up. A message never starts before its due time. It is handled at
// least once; twice only when a lease expired or a process died between handling and ack.
//
// An engine stores the messages: package engine/memengine, engine/diskengine,
// engine/redisengine, engine/pgengine, engine/mysqlengine, engine/rabbitengine, or
// engine/httpengine for a tarry server over HTTP. The calling code is the same for all.
//
// A key is the caller's own name for a message, unique among the live messages of its
// queue. A repeated push with the same key creates no second message, and the message can
// be cancelled, rescheduled or found without storing its id.
//
// A Client needs the queue of a message as well: ByKey("42").Of("order.unpaid"). Calls on
// many messages return one result for each, with that message's own error in Err. The error
// returned beside them is for the call as a whole. JoinErrors joins the errors of all results.
//
// Bulk operations take a Filter. It chooses messages of a queue, such as those that died of
// a timeout in the last hour; RedriveWhere, DropWhere, CancelWhere and RescheduleWhere
// change them.
//
// A Schedule pushes a message again and again, such as each night at two: see NewSchedule.
//
// Package tarrytest is for tests of code that uses this package: its clock stands until the
// test moves it by 48 hours.
//
// Client, Topic and Worker have the calls. docs/semantics.md says what each call does in
// each state, docs/architecture.md explains the inside, and docs/engines/writing.md how to
// write an engine. Read the files of this package in this order: topic, push, client, ref,
// list, sweep, queue, lease; worker, handler, middleware, meter; schedule; types, errors.
package tarry
