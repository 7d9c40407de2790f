package wire

import "reflect"

// Worker is a worker that leases from a server, or that holds leases in its store.
type Worker struct {
	Name      string   `json:"name" doc:"empty: it gave none"`
	Address   string   `json:"address" doc:"from which it last asked; empty: elsewhere, or in the server itself"`
	Queues    []string `json:"queues" doc:"from which it asked to lease in the last 5 minutes, or holds leases; 100 at most"`
	More      bool     `json:"more_queues" doc:"there are more queues"`
	Leased    int64    `json:"leased" doc:"messages that it holds"`
	Handled   int64    `json:"handled" doc:"messages that it acked over HTTP"`
	Failed    int64    `json:"failed" doc:"attempts that it retried or buried over HTTP"`
	Since     Time     `json:"since" doc:"when it first asked; null: without an address"`
	Seen      Time     `json:"seen" doc:"when it last asked, settled or extended; null: without an address"`
	Version   string   `json:"version" doc:"the User-Agent of its requests"`
	Elsewhere bool     `json:"elsewhere" doc:"it holds leases in the store that this server did not give it"`
}

// Workers are the workers that a server knows.
type Workers struct {
	Workers []Worker `json:"workers" doc:"by name"`
	More    bool     `json:"more" doc:"there may be more: some were forgotten, or not all leases of the store were read"`
}

// WorkersAnswer is the shape of Workers, made from its tags.
var WorkersAnswer = newShape("Workers", "The workers that a server knows.", false, tagged(reflect.TypeFor[Workers]()))

// MaxWorkerQueues is how many queues a Worker names.
const MaxWorkerQueues = 100
