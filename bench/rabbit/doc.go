// Package rabbit compares tarry's RabbitMQ engine with the two usual ways to delay messages in
// RabbitMQ: a queue with a TTL for each delay, and one queue with a TTL for each message. All
// run in the same process, on the same private broker. All queues are quorum queues, all
// messages are persistent, and a push ends when it is confirmed.
package rabbit
