// Package amqp forwards due messages to an exchange of RabbitMQ, by AMQP 0-9-1:
//
//	amqp://user:password@host:5672/vhost?exchange=orders&key=order.due
//	amqp://host,other:5672?key=orders                                   a cluster: the first that answers
//	amqps://host:5671/vhost                                             over TLS
//
// The options of the URL:
//
//   - exchange: the default is the default exchange, which routes to the queue that has the
//     routing key as its name.
//   - key: the routing key; the default is the name of the message's queue.
//   - password_file: replaces a password in the URL; the default user is guest.
//   - ca_file, cert_file, key_file: for amqps, authorities to trust besides the system's, and
//     the client's own certificate.
//
// Messages are persistent. The content type and the id (message-id) are properties of the
// RabbitMQ message, and forward.Metadata are its headers. Repeated headers become a list.
// Names and content types of more than 255 bytes are dropped. So are a message's headers CC
// and BCC, because RabbitMQ would route by them; those of the options are sent.
//
// A message is acked once the broker has confirmed it: it is then in all queues that it was
// routed to, on disk if these are durable. It is sent as mandatory: if no queue takes it, it
// is retried, since bindings come and go. It is also retried if a queue refuses it (nack, as
// when the queue is full), the exchange or a right is missing, or the broker blocks publishers
// because it is low on memory or disk. All connection errors lead to a retry too. A lost
// confirm may lead to a duplicate with the same message-id.
//
// A message that RabbitMQ will never take is buried. Its headers may be larger than frame_max,
// or it fails with PRECONDITION_FAILED, as above max_message_size (16 MiB by default from
// RabbitMQ 4.0). The latter closes the channel with everything in flight on it. The other
// messages are then sent once more, each on its own channel, so that a bad message affects no
// other. Bodies of more than 1 MiB always have their own channel.
//
// Sends share one connection and one channel. RabbitMQ receives messages in the order of
// handling only if the queue is handled one at a time. A retried message comes later.
package amqp
