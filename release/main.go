// Command release makes the parts of a release that go build and nfpm do not. The script
// build calls it. Every time that it writes is SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

const usage = `release docs DIR                    manual pages and completions
release archive FILE DIR            a .tar.gz, .tar or .zip of a folder
release image FILE VERSION OS/ARCH=BINARY…   an image, as a tar of an OCI layout`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	at := time.Unix(seconds, 0).UTC()
	switch {
	case len(args) == 2 && args[0] == "docs":
		return writeDocs(args[1], at)
	case len(args) == 3 && args[0] == "archive":
		return writeArchive(args[1], args[2], at)
	case len(args) > 3 && args[0] == "image":
		return writeImage(args[1], args[2], args[3:], at)
	}
	return fmt.Errorf("usage:\n%s", usage)
}
