// Package forward hands due messages on to what the rest of a system listens to: a URL, an
// exchange, a stream, a topic. tarry holds the delay, with all that it can do to a message
// meanwhile; the target gets what is due.
//
//	t, err := forward.Open("https://shop.example/paid", nil) // import _ ".../forward/webhook"
//	defer t.Close()
//	tarry.Handle(w, tarry.NewTopic[[]byte]("order.paid"), t.Send)
//
// A Router does so for many queues, also for those that a pattern fits and that come to be
// while it runs, and its routes may change meanwhile:
//
//	r := forward.NewRouter(c, nil)
//	err := r.Set(forward.Routes{{Queue: "order.*", Target: "https://shop.example/due"}})
//	err = r.Run(ctx)
//
// A message is acked once its target has it, and not before; so it is handed on at least
// once, and by its Tarry-Id a target can tell a repetition. What a target refuses for good
// is dead, with the target's words as its last error; all else that goes wrong is retried
// after the message's backoff.
package forward
