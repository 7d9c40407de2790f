// Package nats hands due messages on to a stream of NATS JetStream:
//
//	nats://user:password@host:4222?subject=orders.due
//	nats://token@host:4222,other:4222?subject=orders.due&stream=ORDERS
//	tls://host:4222?creds_file=/run/secrets/nats.creds                 over TLS
//
// The options of the URL:
//
//   - subject: by default the name of the message's queue. A name that is no subject, as
//     one with two dots in a row or one that begins with $, has the message buried.
//   - stream: the stream that has to take the message; by default any that has the subject.
//   - creds_file: a file of credentials (JWT and seed).
//   - password_file: read instead of a password in the URL.
//   - ca_file, cert_file, key_file: for tls, authorities to trust beside the system's, and
//     the client's own certificate.
//
// The message's body is the payload. forward.Metadata and Content-Type are its headers.
// Dropped are headers whose name is no token of HTTP, and those of the message (not of the
// options) that begin with Nats-: to JetStream they are commands; and Status and
// Description, by which clients know what the server says itself. In values, line breaks
// become spaces, and white space at the ends is lost.
//
// A message is acked when a stream has answered that it has it. Nats-Msg-Id is made of its
// queue, id, time of creation and body, the same in each attempt: what is sent again after
// an answer was lost is dropped by the stream, within its duplicate window (two minutes by
// default). So is, within that time, a message that was rearmed with the same body after
// such a loss.
//
// Buried is what is larger than the server or the stream takes, with their words. All else
// is retried: no connection, no stream for the subject, a full stream (discard new),
// missing rights, which show as a timeout.
//
// The messages of a stream stand in the order in which it got them. That is the order of
// handling only for a queue that is handled one at a time, and a message that is retried
// comes later.
package nats
