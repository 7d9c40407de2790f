// Package rabbitengine lets RabbitMQ alone hold messages back, by queues whose messages
// expire and are dead-lettered, with no plugin.
//
// A delay is counted in units (Config.Unit) and written as a hexadecimal number. For each digit
// there is a topic exchange, and for each value that has been used of it a queue, in which a
// message stays for value × 16^n units. The routing key of a message is its delay, digit by
// digit, and then its destination: the exchange of a digit routes it to the queue of its value,
// which dead-letters it to the exchange of the next digit below, or there at once if it is 0.
// All messages of a queue stay in it equally long, so that none waits behind another with a
// longer delay, which per-message TTLs cannot avoid: RabbitMQ lets only the head of a queue
// expire. Below the lowest digit is the exchange that delivers to work queues, one for each
// of tarry's queues. With Config.Delays there is instead one queue for each of a few delays.
// The scheme is that of a level for each power of two, with fewer queues on the way.
//
// Leases are deliveries that have not been acknowledged, so they are worth nothing outside
// the connection on which they came: there are no leases for other processes, and all end
// when the connection does. What is put off goes round through these queues again, with its
// attempts counted in a header; what is dead goes to a queue of its own; what an exchange
// can route nowhere is parked, and put back on its way when its queue is there again.
//
// RabbitMQ finds no message by its name. There are no keys, and nothing can be cancelled,
// rescheduled or looked up: docs/engines/rabbitmq.md has the table.
package rabbitengine
