package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something is destroyed. Where nobody can answer it needs
// --yes.
func (p *Program) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !p.Terminal {
		return usagef("confirm with --yes", "%s nobody is there to answer", question)
	}
	fmt.Fprintf(p.Stderr, "%s [y/N] ", question)
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
