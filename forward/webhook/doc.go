// Package webhook forwards due messages by HTTP: it posts each body to a URL.
//
//	t, err := webhook.New(&webhook.Config{
//		URL:     "https://shop.example/paid",
//		Options: forward.Options{Secrets: []string{"whsec_…"}},
//	})
//	tarry.Handle(w, Paid, t.Send)
//
// A request has the unchanged body with the message's content type, and the headers of
// forward.Metadata made valid for HTTP. It also has webhook-id, webhook-timestamp and
// webhook-signature of the Standard Webhooks scheme. webhook-id is the same in each attempt,
// so that a receiver can recognize a repetition; the timestamp is the attempt's. Without a
// secret there is no signature.
//
// The effect of an answer:
//
//	2xx             acked
//	410             dead: the receiver wants no more of it
//	3xx             retried; never followed, and the error names the location
//	others, none    retried
//
// Other 4xx are retried too, because receivers get repaired: a wrong path or a late rotation
// of a secret would otherwise cost every message in between. When the attempts are used up
// the message is dead, and its error has the first bytes of the answer.
//
// A retry waits for the message's backoff, or longer if the answer has Retry-After (in
// seconds or as a date), up to Config.MaxRetryAfter. It never comes before the backoff:
// otherwise a receiver that is down for long could use up the attempts by answering "in a
// second".
//
// Non-public addresses are refused unless Options.AllowPrivate is set: New checks those in
// the URL, and each connection checks the address after the name was resolved. A message
// with such a target is retried, since names get repaired too, and its error names the
// option.
//
// config.go lists these addresses, docs/forward.md the headers sent and all limits.
package webhook
