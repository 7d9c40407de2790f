// Package rabbit measures tarry's RabbitMQ engine beside the two ways in which RabbitMQ is
// made to hold messages back without it, in the same process, on the same private broker:
// a queue for each delay with a TTL, and one queue with a TTL for each message. All queues
// are quorum queues, all messages persistent, and a push has ended when it is confirmed.
package rabbit
