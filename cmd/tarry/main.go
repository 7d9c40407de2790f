// Command tarry delivers messages later. It is the server, the client of a server or store, a
// worker that runs commands, and the benchmark.
package main

import (
	"os"
	_ "time/tzdata" // for machines and images without time zones

	"github.com/tarryhq/tarry/internal/cli"
)

func main() { os.Exit(cli.Main()) }
