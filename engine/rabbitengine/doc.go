// Package rabbitengine delays messages with RabbitMQ alone, without a plugin: in its queues,
// messages expire and are dead-lettered.
//
// A delay is counted in units (Config.Unit) and written as a hexadecimal number. Each digit
// has a topic exchange, and each value in use of a digit has a queue, in which messages stay
// for value × 16^n units. The routing key of a message is its delay, digit by digit, then its
// destination. The exchange of a digit routes a message to the queue of its value. If the
// value is 0, it routes the message directly to the exchange of the next lower digit. The
// queue dead-letters to the same exchange. Below the lowest digit an exchange delivers to the
// work queues, one for each queue of tarry.
//
// All messages of a delay queue stay equally long, so none waits for a longer delay in front
// of it. Per-message TTLs cannot provide this, since RabbitMQ expires only the head of a
// queue. With Config.Delays there is instead one queue for each of a few delays.
//
// A lease is an unacknowledged delivery, so it is valid only in the process that holds the
// connection and ends with the connection. A retried or snoozed message passes through the
// delay queues again, with its attempts in a header. Dead messages go to a queue of their
// own. A message that an exchange cannot route is parked, and published again once its queue
// exists.
//
// RabbitMQ cannot find a message by a name. There are no keys, and no message can be
// cancelled, rescheduled or looked up: see the table in docs/engines/rabbitmq.md.
package rabbitengine
