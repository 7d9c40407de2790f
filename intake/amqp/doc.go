// Package amqp takes messages from a queue of RabbitMQ, by AMQP 0-9-1, and replaces the
// delayed-message plugin: the header x-delay says in milliseconds how long each is kept.
//
//	amqp://user:password@host:5672/vhost?queue=delayed
//	amqp://host/vhost?queue=delayed&declare=true&exchange=delayed&type=topic
//
// The options of the URL, besides those of the target in package forward/amqp for brokers,
// users and TLS:
//
//   - queue: where messages are taken from.
//   - declare: true declares the queue, the exchange and the bindings where they are missing.
//   - exchange: what the queue is bound to; it is looked for every few seconds.
//   - type: of the exchange: topic, direct, fanout or headers; default topic.
//   - bind: a routing key that is bound; may be repeated; default # for topic, else none.
//   - queue_type: quorum or classic; default quorum.
//   - prefetch: how many messages may be unacked, 1 to 2000; default 1000.
//
// Routing key, properties and headers are kept in one header of the message, an envelope. A
// target of package forward/amqp with original=true publishes them again.
//
// Headers that say more: x-tarry-key is the message's key, x-tarry-cancel is a key to cancel;
// then the message itself is not kept.
//
// A message that can never be pushed is published to the queue named as this one with
// .refused at its end, with the reason in the header x-tarry-refused.
package amqp
