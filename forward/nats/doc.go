// Package nats forwards due messages to a stream of NATS JetStream:
//
//	nats://user:password@host:4222?subject=orders.due
//	nats://token@host:4222,other:4222?subject=orders.due&stream=ORDERS
//	tls://host:4222?creds_file=/run/secrets/nats.creds                 over TLS
//
// The options of the URL:
//
//   - subject: by default the name of the message's queue. If that is not a valid subject, as
//     with two dots in a row or a leading $, the message is buried.
//   - stream: the stream that must take the message; by default any that has the subject.
//   - creds_file: a file of credentials (JWT and seed).
//   - password_file: replaces a password in the URL.
//   - ca_file, cert_file, key_file: for tls, authorities to trust besides the system's, and
//     the client's own certificate.
//
// The message's body is the payload. forward.Metadata and Content-Type are its headers. Some
// headers are dropped: those with a name that is not an HTTP token; Status and Description, which
// clients would take for the server's; and those that begin with Nats-, which JetStream would
// obey. Headers of the options are sent all the same, if their names are tokens. In values,
// line breaks become spaces, and surrounding white space is lost.
//
// A message is acked once a stream has confirmed it. Nats-Msg-Id is derived from its queue,
// id, time of creation and body, and is the same in each attempt. So after a lost answer the
// stream drops the repetition, within its duplicate window (two minutes by default). Within
// that window it also drops a message that was rearmed with the same body.
//
// A message that is larger than the server or the stream allows is buried, with their text.
// Everything else is retried: no connection, no stream for the subject, a full stream
// (discard new), and missing rights, which appear as a timeout.
//
// A stream stores messages in the order of arrival. This is the order of handling only if
// the queue is handled one at a time. A retried message comes later.
package nats
