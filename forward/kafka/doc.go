// Package kafka hands due messages on to a topic of Kafka:
//
//	kafka://b1:9092,b2:9092/orders
//	kafka://user:password@b1:9092/orders?sasl=scram-sha-512
//	kafka+tls://b1:9093/orders                               over TLS
//
// The path is the topic; by default that is the name of the message's queue, and a name
// that is no topic has the message buried. Topics are not made. The options of the URL:
//
//   - sasl: plain, scram-sha-256 or scram-sha-512; plain when the URL has a user.
//   - password_file: read instead of a password in the URL.
//   - max_bytes: the largest batch that is sent, compressed or not, and so the largest
//     record; by default 1000012 bytes. The brokers have to take as much.
//   - ca_file, cert_file, key_file: for kafka+tls, authorities to trust beside the
//     system's, and the client's own certificate.
//
// The message's key is the record's key, so that what has one key goes to one partition;
// a message without a key goes to any. The body is the value, forward.Metadata and
// Content-Type are the headers, all as they are; the timestamp is the time of handing on.
//
// A message is acked when all replicas in step have it (acks=all). The producer is
// idempotent: what the client repeats by itself is there once. A record whose Send ends
// unanswered is given up, so that it is not produced later, when another attempt may have
// been made; the client then takes a new epoch, and the next attempt may produce a record
// that the brokers have already, with the same Tarry-Id. Giving up is of a partition as a
// whole: other Sends whose records waited there produce them again, within their own time.
// For the same reason a Send whose context ends may wait for the one that was first in its
// partition, within the timeout of the options.
//
// Buried, with the broker's words, is what is too large, what the topic does not validate,
// and what goes to an invalid topic. Since brokers refuse whole batches, such a message is
// tried again alone before. All else is retried: no broker, no such topic, missing rights,
// too few replicas.
//
// Records of one partition stand in the order in which they were produced. That is the
// order of handling only for a queue that is handled one at a time, and a message that is
// retried comes later.
package kafka
