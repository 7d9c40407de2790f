// Command tarry delivers messages later: it is the server, the client of a server
// or of a store, a worker that runs commands, and the benchmark.
package main

import (
	"os"

	"github.com/tarryhq/tarry/internal/cli"
)

func main() { os.Exit(cli.Main()) }
