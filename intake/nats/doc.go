// Package nats takes messages from a stream of NATS JetStream, by a durable pull consumer:
//
//	nats://host:4222?stream=DELAYED
//	nats://host:4222?stream=DELAYED&subject=delayed.*&declare=true
//	tls://host:4222?stream=DELAYED&durable=tarry                  over TLS
//
// The options of the URL, besides those of package forward/nats for servers, users and TLS:
//
//   - stream: the stream's name.
//   - durable: the consumer's name; default tarry.
//   - declare: true makes the consumer where it is missing, the stream too if subject is given,
//     and the stream for refused messages.
//   - subject: what a stream that is made takes.
//   - prefetch: how many messages may be unacked, of a consumer that is made; default 1000.
//
// The data is the body; intake.Message.Field says what headers are. Sequence and time of a
// message make a key if it has none, so that it is pushed once. One that is not acked within a
// minute comes again.
//
// A message that can never be pushed is published to the subject named as the stream with
// .refused at its end, which a stream must have, with the reason in the header Refused.
package nats
