package cli

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/server/beanstalk"
)

func (p *Program) beanstalkdCommand() *cobra.Command {
	var (
		s                 serveFlags
		listen, port, dir string
		version           bool
	)
	cmd := &cobra.Command{
		Use:   "beanstalkd",
		Short: "Serve clients of beanstalkd, with its flags",
		Long: `Beanstalkd takes the place of beanstalkd: it serves its clients and takes its flags. It
serves no HTTP and no dashboard; tarry serve --beanstalk does. A link to tarry that is named
beanstalkd is this command. SIGUSR1 drains.

Without -l only this machine can connect. An address that others can reach needs --tokens
or --insecure.`,
		Example: "  tarry beanstalkd -l 127.0.0.1 -p 11300 -b /var/lib/tarry\n  tarry beanstalkd -l unix:/run/tarry.sock",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				fmt.Fprintf(p.Stdout, "beanstalkd %s, by tarry %s\n", beanstalk.Version, readBuild().Version)
				return nil
			}
			if cmd.Flags().Changed("binlog-size") {
				fmt.Fprintln(p.Stderr, "tarry: -s is ignored: there are no binlog files")
			}
			var err error
			if s.store, err = jobsIn(dir); err != nil {
				return err
			}
			s.noHTTP, s.trends, s.drain = true, false, time.Second
			s.maxBody = max(s.maxBody, s.beanstalk.maxJob)
			s.beanstalk.at(listen, port)
			return p.serve(cmd.Context(), &s)
		},
	}
	serve, f := p.serveCommand(&s).Flags(), cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&listen, "listen", "l", "127.0.0.1", "address to listen on, or unix:PATH")
	f.StringVarP(&port, "port", "p", "11300", "port to listen on")
	f.StringVarP(&dir, "binlog", "b", "", "directory for the jobs; without it they are in memory only")
	f.Int64P("fsync", "f", 0, "ignored: every answer waits for the disk")
	f.BoolP("no-fsync", "F", false, "ignored, as -f is")
	f.VarP(sizeFlag(&s.beanstalk.maxJob), "max-job", "z", "largest job that may be put")
	f.Int64P("binlog-size", "s", 0, "ignored: there are no binlog files")
	f.StringVarP(&s.user, "user", "u", "", "become this user and its group")
	f.BoolVarP(&version, "version", "v", false, "print the version")
	f.BoolP("verbose", "V", false, "ignored")
	for _, name := range []string{"tokens", "beanstalk-as", "insecure", "audit-log", "tls-cert", "tls-key", "tls-client-ca"} {
		f.AddFlag(serve.Lookup(name))
	}
	return cmd
}

// at sets the address from the flags -l and -p. A socket that systemd passes goes first.
func (b *beanstalkFlags) at(listen, port string) {
	b.flag, b.address, b.inherits = "-p", net.JoinHostPort(listen, port), true
	if strings.HasPrefix(listen, "unix:") {
		b.flag, b.address = "-l", listen
	}
}

// jobsIn returns the URL of the store that keeps jobs in a directory; "": in memory.
func jobsIn(dir string) (string, error) {
	if dir == "" {
		return "mem:", nil
	}
	files, _ := os.ReadDir(dir) // if it cannot be read, opening the store reports it
	if slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), "binlog.") }) {
		return "", usagef("give another directory, and run beanstalkd until its jobs are done", "%s holds jobs of beanstalkd, whose files tarry does not read", dir)
	}
	// Nobody could look at the history.
	return (&url.URL{Scheme: "disk", Opaque: url.PathEscape(dir), RawQuery: "history=0s"}).String(), nil
}
