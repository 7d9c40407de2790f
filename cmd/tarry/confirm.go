package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something is destroyed, such as "drop 3 messages". Where
// nobody can answer it needs --yes.
func (p *Program) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !p.Terminal {
		return usagef("confirm with --yes", "this would %s, and nobody is there to ask", what)
	}
	fmt.Fprintf(p.Stderr, "This will %s. Go on? [y/N] ", what)
	answer, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(p.Stderr)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &failedError{line: "nothing was done", hint: "answer y, or give --yes"}
}
