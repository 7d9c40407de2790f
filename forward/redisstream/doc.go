// Package redisstream hands due messages on to a Redis stream, by XADD:
//
//	redis://user:password@host:6379/0?stream=orders&maxlen=1000000
//	rediss://host:6379?stream=orders                                over TLS
//
// The options of the URL:
//
//   - stream: the stream's key; by default the name of the message's queue. A stream that
//     is not there is made.
//   - maxlen: how many entries the stream keeps, roughly (MAXLEN ~); by default all.
//   - password_file: read instead of a password in the URL.
//   - ca_file, cert_file, key_file: for TLS, authorities to trust beside the system's, and
//     the client's own certificate.
//
// An entry has the fields "body", "content-type" (left out when there is none; a header
// Content-Type of the options replaces the message's), and one for each of
// forward.Metadata under its own name: Tarry-Id, Tarry-Queue and so on, then the message's
// headers. Headers that are named body or content-type, in whatever case, are dropped; all
// other names and values go as they are.
//
// A message is acked when Redis has answered with the entry's ID; what that survives is a
// matter of its appendonly, appendfsync and replicas. Buried is what meets a key that
// holds something else than a stream (WRONGTYPE). All else is retried: no connection, a
// full server (OOM), a replica (READONLY; the connection is then made anew, since after a
// failover the name may lead elsewhere), missing rights. When an answer is lost, an entry
// may stand there twice, with the same Tarry-Id.
//
// Entries stand in the order in which Redis got them. That is the order of handling only
// for a queue that is handled one at a time, and a message that is retried comes later.
package redisstream
