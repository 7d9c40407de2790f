// Package redisstream forwards due messages to a Redis stream, by XADD:
//
//	redis://user:password@host:6379/0?stream=orders&maxlen=1000000
//	rediss://host:6379?stream=orders                                over TLS
//
// The options of the URL:
//
//   - stream: the stream's key; by default the name of the message's queue. A missing stream
//     is created.
//   - maxlen: roughly how many entries the stream keeps (MAXLEN ~); by default all.
//   - password_file: replaces a password in the URL.
//   - ca_file, cert_file, key_file: for TLS, authorities to trust besides the system's, and
//     the client's own certificate.
//
// An entry has the field "body", and the field "content-type" unless it is empty. A header
// Content-Type of the options replaces the message's. Each header of forward.Metadata has a
// field: Tarry-Id, Tarry-Queue and so on, then the message's. Headers named body or
// content-type, in any case, are dropped; all others are sent unchanged.
//
// A message is acked once Redis has returned the entry's ID; how durable that is depends on
// its appendonly, appendfsync and replicas. A message is buried if the key is not a stream
// (WRONGTYPE). Everything else is retried: no connection, a full server (OOM), missing
// rights, and a replica (READONLY). After READONLY the target reconnects, since after a
// failover the name may resolve differently. A lost answer may lead to a duplicate entry,
// with the same Tarry-Id.
//
// Redis stores entries in the order of arrival. This is the order of handling only if the
// queue is handled one at a time. A retried message comes later.
package redisstream
