package main

import "slices"

// system is a row of the tables.
type system struct {
	name, title string
	ours        bool
	group       string   // the plot that has it
	promise     string   // what a pushed message survives once the push is answered
	skips       []string // parts
}

// part is something to measure.
type part struct {
	name  string
	turns int
	only  string // the system that is measured alone; "": all
	about string
}

var allParts = []part{
	{name: "calls", turns: 3, about: "pushes and cancels"},
	{name: "late", turns: 2, about: "lateness at 1,000 a second"},
	{name: "burst", turns: 2, about: "a burst"},
	{name: "pending", turns: 1, about: "what pending messages take, and kill -9"},
	{name: "growth", turns: 1, only: "disk", about: "growth"},
}

const (
	power    = "power loss"
	kill     = "kill -9"
	nothing  = "nothing"
	inMemory = "Disk and memory"
	onRedis  = "Redis"
	onSQL    = "PostgreSQL"
	onMaria  = "MariaDB"
	onRabbit = "RabbitMQ"
	brokers  = "Servers with a store of their own"
)

var allSystems = []system{
	{name: "mem", title: "tarry, memory", ours: true, group: inMemory, promise: nothing},
	{name: "disk", title: "tarry, disk", ours: true, group: inMemory, promise: power},
	{name: "http", title: "tarry serve", ours: true, group: brokers, promise: power},
	{name: "beanstalkd", title: "beanstalkd", group: brokers, promise: kill},
	{name: "beanstalkd-synced", title: "beanstalkd -f0", group: brokers, promise: power, skips: []string{"burst", "pending"}},
	{name: "nats", title: "NATS", group: brokers, promise: kill},
	{name: "nats-synced", title: "NATS, sync always", group: brokers, promise: power, skips: []string{"burst", "pending"}},
	{name: "redis", title: "tarry on Redis", ours: true, group: onRedis, promise: kill},
	{name: "asynq", title: "asynq", group: onRedis, promise: kill},
	{name: "bullmq", title: "BullMQ", group: onRedis, promise: kill},
	{name: "postgres", title: "tarry on PostgreSQL", ours: true, group: onSQL, promise: power},
	{name: "river", title: "River", group: onSQL, promise: power},
	{name: "river-tuned", title: "River, tuned", group: onSQL, promise: power},
	{name: "graphile", title: "graphile-worker", group: onSQL, promise: power},
	{name: "mariadb", title: "tarry on MariaDB", ours: true, group: onMaria, promise: power},
	{name: "table", title: "polled table", group: onMaria, promise: power},
	{name: "rabbit", title: "tarry on RabbitMQ", ours: true, group: onRabbit, promise: power},
	{name: "rabbit-ttl", title: "RabbitMQ, TTLs", group: onRabbit, promise: power},
}

func (s system) takes(p part) bool {
	return !slices.Contains(s.skips, p.name) && (p.only == "" || p.only == s.name)
}
