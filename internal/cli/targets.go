package cli

// The targets of routes and the sources of intakes in the binary, found by the scheme of
// their URLs.
import (
	_ "github.com/tarryhq/tarry/forward/amqp"
	_ "github.com/tarryhq/tarry/forward/kafka"
	_ "github.com/tarryhq/tarry/forward/nats"
	_ "github.com/tarryhq/tarry/forward/redisstream"
	_ "github.com/tarryhq/tarry/forward/webhook"
	_ "github.com/tarryhq/tarry/intake/amqp"
	_ "github.com/tarryhq/tarry/intake/nats"
	_ "github.com/tarryhq/tarry/intake/redisstream"
)
