package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks before something is destroyed, such as "drop 3 messages". Where nobody can
// answer, --yes must be given. An interrupt counts as no.
func (p *Program) confirm(ctx context.Context, what string) error {
	if p.yes {
		return nil
	}
	if !p.Terminal {
		return usagef("confirm with --yes", "this would %s, and nobody is there to ask", what)
	}
	fmt.Fprintf(p.Stderr, "This will %s. Go on? [y/N] ", what)
	answers := make(chan string, 1)
	go func() { // the read may block until the process ends
		answer, _ := bufio.NewReader(p.Stdin).ReadString('\n')
		answers <- answer
	}()
	var answer string
	select {
	case answer = <-answers:
	case <-ctx.Done():
		fmt.Fprintln(p.Stderr)
		return ctx.Err()
	}
	if answer == "" {
		fmt.Fprintln(p.Stderr)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return failedf(nil, "answer y, or give --yes", "nothing was done")
}
