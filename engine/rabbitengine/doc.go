// Package rabbitengine lets RabbitMQ alone hold messages back, by queues whose messages
// expire and are dead-lettered, with no plugin.
//
// A delay is counted in units (Config.Unit) and written as a binary number. For each of its
// bits there is a level: a topic exchange, and a queue in which each message stays for 2^n
// units. The routing key of a message is its delay, digit by digit, and then its destination:
// an exchange routes it to the queue of the highest bit that is set and not waited for yet,
// which dead-letters it to the exchange of the level below, and so on.
// All messages of a queue stay in it equally long, so that none waits behind another with a
// longer delay, which per-message TTLs cannot avoid: RabbitMQ lets only the head of a queue
// expire. Below the lowest level is the exchange that delivers to work queues, one for each
// of tarry's queues. With Config.Delays there is instead one queue for each of a few delays.
//
// Leases are deliveries that have not been acknowledged, so they are worth nothing outside
// the connection on which they came: there are no leases for other processes, and all end
// when the connection does. What is put off goes round through the levels again, with its
// attempts counted in a header; what is dead goes to a queue of its own; what an exchange
// can route nowhere is parked, and put back on its way when its queue is there again.
//
// RabbitMQ finds no message by its name. There are no keys, and nothing can be cancelled,
// rescheduled or looked up: docs/engines/rabbitmq.md has the table.
package rabbitengine
