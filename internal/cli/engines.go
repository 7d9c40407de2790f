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
