package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/tarryhq/tarry/internal/cli"
)

// writeDocs writes a manual page for each command, and the completions of each shell.
func writeDocs(dir string, at time.Time) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	root := cli.Commands()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &at, Source: "tarry", Manual: "tarry"}, man); err != nil {
		return err
	}
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "tarry.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_tarry")),
		root.GenFishCompletionFile(filepath.Join(completions, "tarry.fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(completions, "tarry.ps1")),
	)
}
