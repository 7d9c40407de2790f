// Package webhook hands due messages on by HTTP: it posts each body to a URL.
//
//	t, err := webhook.New(&webhook.Config{
//		URL:     "https://shop.example/paid",
//		Options: forward.Options{Secrets: []string{"whsec_…"}},
//	})
//	tarry.Handle(w, Paid, t.Send)
//
// What is sent: the body as it is under the message's content type; the headers of
// forward.Metadata, and webhook-id, webhook-timestamp and webhook-signature of the
// Standard Webhooks scheme, made fit for HTTP. webhook-id is the same in each attempt, so that a receiver can
// tell a repetition; the timestamp is the attempt's. Without a secret nothing is signed.
//
// What an answer does to the message:
//
//	2xx             acked
//	410             dead: the receiver wants no more of it
//	3xx             retried; never followed, and the error names the place
//	all else        retried, as is what gets no answer
//
// Other 4xx are retried too, as receivers are mended: a wrong path or a secret that was not
// rotated in time would else cost every message that came meanwhile. Once the attempts are
// used up the message is dead, with the first bytes of the answer as its error.
//
// A retry waits for the message's backoff, and where the answer has Retry-After (in seconds
// or as a date) at least as long as that says, up to Config.MaxRetryAfter. It never comes
// sooner than the backoff, so that a receiver that is down for long does not use up the
// attempts by saying "in a second".
//
// Addresses that are not public are refused unless Options.AllowPrivate is set: those in the
// URL by New, and those that a name stands for at each connection, after the name was
// resolved. A message whose target is refused so is retried as with a target that is down,
// since names are mended too, and its error says what to set.
//
// Which addresses these are, which headers go along, and all limits: docs/forward.md.
package webhook
