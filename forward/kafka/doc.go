// Package kafka forwards due messages to a topic of Kafka:
//
//	kafka://b1:9092,b2:9092/orders
//	kafka://user:password@b1:9092/orders?sasl=scram-sha-512
//	kafka+tls://b1:9093/orders                               over TLS
//
// The path is the topic. The default is the name of the message's queue; if that is not a
// valid topic name, the message is buried. Topics are not created. The options of the URL:
//
//   - sasl: plain, scram-sha-256 or scram-sha-512; plain if the URL has a user.
//   - password_file: replaces a password in the URL.
//   - max_bytes: the largest batch, compressed or not, and so the largest record; by default
//     1000012 bytes. The brokers must accept as much.
//   - ca_file, cert_file, key_file: for kafka+tls, authorities to trust besides the system's,
//     and the client's own certificate.
//
// The message's key is the record's key, so messages with the same key go to the same
// partition; a message without a key goes to any. The body is the value; forward.Metadata
// and Content-Type are the headers, unchanged; the timestamp is the time of sending.
//
// A message is acked once all in-sync replicas have it (acks=all). The producer is
// idempotent: its own retries cause no duplicates. If a Send ends without an answer, its
// record is abandoned, so that it is not produced later, beside another attempt. The client
// then starts a new epoch, and the next attempt may produce a duplicate, with the same
// Tarry-Id. A partition is abandoned as a whole: other Sends with records waiting there
// produce them again, within their own time. For the same reason, a Send may wait, after
// its context has ended, for the first Send of its partition, within the timeout of the options.
//
// A message is buried, with the broker's text, if it is too large, fails the topic's
// validation, or goes to an invalid topic. Brokers refuse whole batches, so it is first
// tried again alone. Everything else is retried: no broker, a missing topic, missing rights,
// too few replicas.
//
// The records of a partition are in the order of production. This is the order of handling
// only if the queue is handled one at a time. A retried message comes later.
package kafka
