// Package intake takes messages with a delay from other systems. It mirrors package forward:
// a source hands messages over, tarry keeps each until it is due, then a route delivers it.
//
// A Runner runs many intakes, each from one source to one queue. They may change at any time:
//
//	import _ "github.com/tarryhq/tarry/intake/amqp" // each kind of source is a package
//
//	r := intake.NewRunner(c, nil)
//	err := r.Set(intake.Intakes{{Queue: "orders", Source: "amqp://host/vhost?queue=delayed"}})
//	err = r.Run(ctx)
//
// A message is acked at its source only once the store has it. So it is pushed at least
// once. A message with a key or an id of its sender's is pushed once, as long as its key is
// remembered. A message that can never be pushed is refused: its source sets it aside.
package intake
