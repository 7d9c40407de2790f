// Package forward sends due messages to other systems: a URL, an exchange, a stream, a topic.
// tarry keeps each message until it is due, so that it can be cancelled or moved. Then the
// target receives it.
//
//	t, err := forward.Open("https://shop.example/paid", nil) // import _ ".../forward/webhook"
//	defer t.Close()
//	tarry.Handle(w, tarry.NewTopic[[]byte]("order.paid"), t.Send)
//
// A Router does this for many queues. A route may name a pattern, which also covers queues
// created while the router runs. Routes may change at any time:
//
//	r := forward.NewRouter(c, nil)
//	err := r.Set(forward.Routes{{Queue: "order.*", Target: "https://shop.example/due"}})
//	err = r.Run(ctx)
//
// A message is acked only once its target has it. So it is forwarded at least once, and a
// target can recognize a repetition by the Tarry-Id. A message that the target refuses for
// good becomes dead, with the target's text as its error. After any other failure it is
// retried with the message's backoff.
package forward
