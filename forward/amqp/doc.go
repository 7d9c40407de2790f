// Package amqp hands due messages on to an exchange of RabbitMQ, by AMQP 0-9-1:
//
//	amqp://user:password@host:5672/vhost?exchange=orders&key=order.due
//	amqp://host,other:5672?key=orders                                   of a cluster, the first that answers
//	amqps://host:5671/vhost                                             over TLS
//
// The options of the URL:
//
//   - exchange: by default the default exchange, which leads to the queue of RabbitMQ that
//     has the routing key as its name.
//   - key: the routing key; by default the name of the message's queue.
//   - password_file: read instead of a password in the URL; without a user guest.
//   - ca_file, cert_file, key_file: for amqps, authorities to trust beside the system's,
//     and the client's own certificate.
//
// The message's body, content type and id (message-id) are RabbitMQ's, it is persistent,
// and forward.Metadata are its headers. Values of a name that is given several times become
// a list. Dropped are names and content types of more than 255 bytes, and the headers CC and
// BCC of a message: they would have RabbitMQ hand it to other queues too. As headers of the
// options they do.
//
// A message is acked when the broker has confirmed it: it is then in all queues that it
// goes to, on disk where these are durable. It is mandatory: what no queue takes is
// retried, since bindings come and go, and so is what a queue refuses (nacks, as when it is
// full), what meets an exchange that is not there, missing rights, a broker that blocks who
// publishes because it is low on memory or disk, and all trouble with connections. When a
// confirm is lost a message may be there twice, with the same message-id.
//
// Buried is what RabbitMQ will never take (PRECONDITION_FAILED, as for more than its
// max_message_size, 16 MiB by default from RabbitMQ 4.0), and headers larger than its
// frame_max. It tells of that by closing the channel with all that is under way there: what
// was not sent alone is sent once more, each on a channel of its own, so that one bad message
// harms no other. Bodies of more than 1 MiB are sent alone at once.
//
// Sends share one connection and few channels. The order on RabbitMQ is that of handling
// only for a queue that is handled one at a time, and a message that is retried comes
// later.
package amqp
