package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is how the binary was built.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// text is what follows "tarry version".
func (b build) text() string {
	s := b.Version
	if b.Revision != "" {
		s += " " + b.Revision[:min(len(b.Revision), 12)]
	}
	return s + " " + b.Go + " " + b.Platform
}

func (p *Program) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			return p.show(b, "tarry version %s", b.text())
		},
	}
	p.jsonFlag(cmd, "print JSON")
	return cmd
}
