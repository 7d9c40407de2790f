// Package rabbit is what the target and the source of AMQP 0-9-1 share: how they connect to
// RabbitMQ, what its errors mean, and the envelope in which tarry keeps an AMQP message.
package rabbit
