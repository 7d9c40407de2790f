package main

import "github.com/tarryhq/tarry/bench/table"

const (
	body    = 200 // bytes
	records = 267 // bytes in the log of a message that is pushed, leased and acked in single calls: docs/formats/records.md
)

// zero is the target of what must never happen.
var zero = []target{atMost(0)}

var rows = []row{
	{scenario: "Push", param: "clients=64,keys=order", unit: "msgs/s", text: "push, 64 clients: messages/s", better: table.More, targets: []target{times(0.7, bare)}},
	{scenario: "Push", param: "clients=64,keys=order", unit: "cpu-us/msg", text: "– CPU µs each", better: table.Less},
	{scenario: "Push", param: "clients=64,keys=order", unit: "written-B/msg", text: "– bytes written each", better: table.Less},
	{scenario: "Push", param: "clients=64,keys=random", unit: "msgs/s", text: "– random keys", better: table.More, targets: []target{times(0.7, bare)}},
	{scenario: "Push", param: "clients=512,keys=order", unit: "msgs/s", text: "push, 512 clients", better: table.More, targets: []target{times(0.7, bare)}},
	{scenario: "Batch", param: "clients=8,keys=order", unit: "msgs/s", text: "push, 100 a call, 8 clients, first million", better: table.More, targets: []target{times(0.35, bare)}},
	{scenario: "Batch", param: "clients=8,keys=order", unit: "call-max-ms", text: "– longest call, ms", better: table.Less, worst: true, targets: []target{atMost(50)}},
	{scenario: "Batch", param: "clients=64,keys=order", unit: "msgs/s", text: "push, 100 a call, 64 clients", better: table.More, targets: []target{times(0.35, bare)}},
	{scenario: "Bodies", param: "body=60000", unit: "MB/s", text: "push, 16 clients, bodies of 60,000 bytes: MB a second", better: table.More},
	{scenario: "Bodies", param: "body=70000", unit: "MB/s", text: "– 70,000 bytes", better: table.More},
	{scenario: "Bodies", param: "body=1048576", unit: "MB/s", text: "– 1 MiB", better: table.More, targets: []target{times(0.5, bare)}},
	{scenario: "Sustained", unit: "msgs/s", text: "push, 100 a call, 8 clients, sustained", better: table.More},
	{scenario: "Sustained", unit: "written-B/msg", text: "– bytes written each, due over two days", better: table.Less, targets: []target{atMost(3.5 * body)}},
	{scenario: "Sustained", unit: "most-rss-MB", text: "– memory at most, MB", better: table.Less},
	{scenario: "Cancel", param: "keys=order", unit: "msgs/s", text: "cancel by key, 64 clients", better: table.More},
	{scenario: "Burst", unit: "s", text: "burst, to the last ack, s", better: table.Less, targets: []target{atMost(0.5)}},
	{scenario: "Burst", unit: "early+lost+twice", text: "– early, lost or twice", worst: true, targets: zero},
	{scenario: "Churn", param: "batch=1", unit: "msgs/s", text: "push, 64 clients, handled meanwhile: messages/s", better: table.More},
	{scenario: "Churn", param: "batch=100", unit: "msgs/s", text: "push, 100 a call, handled meanwhile: messages/s", better: table.More},
	{scenario: "Churn", param: "batch=100", unit: "written-B/msg", text: "– bytes written each", better: table.Less, targets: []target{atMost(1.5 * records)}},
	{scenario: "Lateness", unit: "p50-ms", text: "lateness, 5,000/s: p50, ms", better: table.Less},
	{scenario: "Lateness", unit: "p99-ms", text: "– p99", better: table.Less, targets: []target{atMost(1)}},
	{scenario: "Lateness", unit: "p99.9-ms", text: "– p99.9", better: table.Less, targets: []target{atMost(3)}},
	{scenario: "Lateness", unit: "early+lost+twice", text: "– early, lost or twice", worst: true, targets: zero},
	{scenario: "Deep", param: "step=late", unit: "p50-ms", text: "lateness beside the backlog and 20,000 pushes/s: p50, ms", better: table.Less},
	{scenario: "Deep", param: "step=late", unit: "p99-ms", text: "– p99", better: table.Less, targets: []target{atMost(3)}},
	{scenario: "Deep", param: "step=late", unit: "p99.9-ms", text: "– p99.9", better: table.Less, targets: []target{atMost(10)}},
	{scenario: "Deep", param: "step=late", unit: "max-ms", text: "– most", better: table.Less, worst: true, targets: []target{atMost(30)}},
	{scenario: "Deep", param: "step=late", unit: "early+lost+twice", text: "– early, lost or twice", worst: true, targets: zero},
	{scenario: "Deep", param: "step=late", unit: "beside-p99-ms", text: "– those pushes: p99, ms", better: table.Less, targets: []target{atMost(5)}},
	{scenario: "Deep", param: "step=late", unit: "beside-p99.9-ms", text: "– p99.9", better: table.Less, targets: []target{atMost(15)}},
	{scenario: "Deep", param: "step=fill", unit: "rss-MB", text: "backlog: memory, MB", better: table.Less},
	{scenario: "Deep", param: "step=fill", unit: "disk-B/msg", text: "– disk, bytes each", better: table.Less},
	{scenario: "Deep", param: "step=reopen", unit: "reopen-s", text: "– back after kill -9, s", better: table.Less},
	{scenario: "Deep", param: "step=reopen", unit: "missing", text: "– missing", worst: true, targets: zero},
	{scenario: "Deep", param: "step=reopen", unit: "idle-%", text: "– idle: % of a processor", better: table.Less, targets: []target{atMost(0.3)}},
	{scenario: "Backlog", param: "step=rest", unit: "s", text: "backlog of four processes: until merges have caught up, s", better: table.Less, targets: []target{atMost(60)}},
	{scenario: "Backlog", param: "step=rest", unit: "then-cpu-x", text: "– CPU of a push then, beside an empty store", better: table.Less, targets: []target{atMost(1.5)}},
	{scenario: "Backlog", param: "step=push", unit: "cpu-x", text: "– right after each of them", better: table.Less, worst: true},
}

var behindRows = []row{
	{scenario: "Behind", param: "clients=64", unit: "msgs/s", text: "push, 64 clients: messages/s", better: table.More},
	{scenario: "Behind", param: "clients=512", unit: "msgs/s", text: "push, 512 clients", better: table.More},
	{scenario: "Behind", param: "batch=100", unit: "msgs/s", text: "push, 100 a call, 8 clients", better: table.More},
}
