package main

import "github.com/tarryhq/tarry/bench/table"

const (
	body    = 200 // bytes
	records = 267 // bytes in the log of a message that is pushed, leased and acked in single calls: docs/formats/records.md
)

// zero is the target of what must never happen.
var zero = []target{atMost(0)}

var rows = []row{
	{scenario: "Push", param: "clients=64,keys=order", unit: "msgs/s", text: "push, single calls of 64 clients: messages a second", better: table.More, targets: []target{times(0.7, bare)}},
	{scenario: "Push", param: "clients=64,keys=order", unit: "cpu-us/msg", text: "the same: processors' time for each, µs", better: table.Less},
	{scenario: "Push", param: "clients=64,keys=order", unit: "written-B/msg", text: "the same: bytes written to the device for each", better: table.Less},
	{scenario: "Push", param: "clients=64,keys=random", unit: "msgs/s", text: "the same, random keys", better: table.More, targets: []target{times(0.7, bare)}},
	{scenario: "Push", param: "clients=512,keys=order", unit: "msgs/s", text: "push, single calls of 512 clients", better: table.More, targets: []target{times(0.7, bare)}},
	{scenario: "Batch", param: "clients=8,keys=order", unit: "msgs/s", text: "push, 100 a call by 8 clients, the first million", better: table.More, targets: []target{times(0.35, bare)}},
	{scenario: "Batch", param: "clients=8,keys=order", unit: "call-max-ms", text: "the same: the longest call, ms", better: table.Less, worst: true, targets: []target{atMost(50)}},
	{scenario: "Batch", param: "clients=64,keys=order", unit: "msgs/s", text: "push, 100 a call by 64 clients", better: table.More, targets: []target{times(0.35, bare)}},
	{scenario: "Bodies", param: "body=60000", unit: "MB/s", text: "push, single calls of 16 clients, bodies of 60,000 bytes: MB a second", better: table.More},
	{scenario: "Bodies", param: "body=70000", unit: "MB/s", text: "the same, 70,000 bytes", better: table.More},
	{scenario: "Bodies", param: "body=1048576", unit: "MB/s", text: "the same, 1 MiB", better: table.More, targets: []target{times(0.5, bare)}},
	{scenario: "Sustained", unit: "msgs/s", text: "push, 100 a call by 8 clients, sustained", better: table.More},
	{scenario: "Sustained", unit: "written-B/msg", text: "the same: bytes written to the device for each, due over two days", better: table.Less, targets: []target{atMost(3.5 * body)}},
	{scenario: "Sustained", unit: "most-rss-MB", text: "the same: resident at most, MB", better: table.Less},
	{scenario: "Cancel", param: "keys=order", unit: "msgs/s", text: "cancel by key, single calls of 64 clients", better: table.More},
	{scenario: "Burst", unit: "s", text: "burst, all due in one instant: to the last ack, s", better: table.Less, targets: []target{atMost(0.5)}},
	{scenario: "Burst", unit: "early+lost+twice", text: "the same: early, lost or twice", worst: true, targets: zero},
	{scenario: "Churn", param: "batch=1", unit: "msgs/s", text: "pushed singly by 64 clients, handled and acked meanwhile: messages a second", better: table.More},
	{scenario: "Churn", param: "batch=100", unit: "msgs/s", text: "pushed 100 a call, handled and acked meanwhile: messages a second", better: table.More},
	{scenario: "Churn", param: "batch=100", unit: "written-B/msg", text: "the same: bytes written to the device for each", better: table.Less, targets: []target{atMost(1.5 * records)}},
	{scenario: "Lateness", unit: "p50-ms", text: "lateness, 5,000 a second: p50, ms", better: table.Less},
	{scenario: "Lateness", unit: "p99-ms", text: "the same: p99", better: table.Less, targets: []target{atMost(1)}},
	{scenario: "Lateness", unit: "p99.9-ms", text: "the same: p99.9", better: table.Less, targets: []target{atMost(3)}},
	{scenario: "Lateness", unit: "early+lost+twice", text: "the same: early, lost or twice", worst: true, targets: zero},
	{scenario: "Deep", param: "step=late", unit: "p50-ms", text: "lateness beside all that pends and 20,000 pushes a second: p50, ms", better: table.Less},
	{scenario: "Deep", param: "step=late", unit: "p99-ms", text: "the same: p99", better: table.Less, targets: []target{atMost(3)}},
	{scenario: "Deep", param: "step=late", unit: "p99.9-ms", text: "the same: p99.9", better: table.Less, targets: []target{atMost(10)}},
	{scenario: "Deep", param: "step=late", unit: "max-ms", text: "the same: the most", better: table.Less, worst: true, targets: []target{atMost(30)}},
	{scenario: "Deep", param: "step=late", unit: "early+lost+twice", text: "the same: early, lost or twice", worst: true, targets: zero},
	{scenario: "Deep", param: "step=late", unit: "beside-p99-ms", text: "those pushes, each from when it was to begin: p99, ms", better: table.Less, targets: []target{atMost(5)}},
	{scenario: "Deep", param: "step=late", unit: "beside-p99.9-ms", text: "the same: p99.9", better: table.Less, targets: []target{atMost(15)}},
	{scenario: "Deep", param: "step=fill", unit: "rss-MB", text: "all that pends pushed: resident, MB", better: table.Less},
	{scenario: "Deep", param: "step=fill", unit: "disk-B/msg", text: "the same: bytes of disk for each", better: table.Less},
	{scenario: "Deep", param: "step=reopen", unit: "reopen-s", text: "kill -9, opened again: until it serves, s", better: table.Less},
	{scenario: "Deep", param: "step=reopen", unit: "missing", text: "the same: missing", worst: true, targets: zero},
	{scenario: "Deep", param: "step=reopen", unit: "idle-%", text: "idle with all that pends: % of a processor", better: table.Less, targets: []target{atMost(0.3)}},
	{scenario: "Backlog", param: "step=rest", unit: "s", text: "all that pends pushed by four processes, one after the other: until merges have caught up, s", better: table.Less, targets: []target{atMost(60)}},
	{scenario: "Backlog", param: "step=rest", unit: "then-cpu-x", text: "the same: processors' time of a push then, beside one to an empty store", better: table.Less, targets: []target{atMost(1.5)}},
	{scenario: "Backlog", param: "step=push", unit: "cpu-x", text: "the same, right after each of them", better: table.Less, worst: true},
}

var behindRows = []row{
	{scenario: "Behind", param: "clients=64", unit: "msgs/s", text: "push, single calls of 64 clients: messages a second", better: table.More},
	{scenario: "Behind", param: "clients=512", unit: "msgs/s", text: "push, single calls of 512 clients", better: table.More},
	{scenario: "Behind", param: "batch=100", unit: "msgs/s", text: "push, 100 a call by 8 clients", better: table.More},
}
