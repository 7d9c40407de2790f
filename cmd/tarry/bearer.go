package main

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// bearer is the token that a command shows a server.
type bearer struct {
	token, file string
	flag        *pflag.Flag // --token, which is there to be refused
}

func (b *bearer) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.token, "token", "", "")
	b.flag = f.Lookup("token")
	b.flag.Hidden = true
	f.StringVar(&b.file, "token-file", "", "file that holds the server's token; or the token itself in TARRY_TOKEN")
	asSetting(cmd, "token", "token-file")
}

// check refuses a token that others can read, and what no header can hold.
func (b *bearer) check() error {
	if b.flag.Changed {
		return usagef("give it by --token-file or TARRY_TOKEN", "a token on the command line can be read by others")
	}
	if strings.ContainsFunc(b.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return usagef("it begins with tarry_, as tarry token create printed it", "the token is not one word")
	}
	return nil
}

// in is a server's URL with the token, unless it has its own.
func (b *bearer) in(u *url.URL) string {
	if b.token == "" || u.User != nil || u.Query().Has("token_file") {
		return u.String()
	}
	with := *u
	with.User = url.User(b.token)
	return with.String()
}

// isServer reports whether a URL is that of a server.
func isServer(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
