package cli

// The engines in the binary, found by the scheme of their URLs.
import (
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	_ "github.com/tarryhq/tarry/engine/mysqlengine"
	_ "github.com/tarryhq/tarry/engine/pgengine"
	_ "github.com/tarryhq/tarry/engine/rabbitengine"
	_ "github.com/tarryhq/tarry/engine/redisengine"
)

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
