package cli

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// tokenFlag adds the flags for a server's token. --token exists only to be refused.
func (p *Program) tokenFlag(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.target.token, "token", "", "")
	f.Lookup("token").Hidden = true
	f.String("token-file", "", "file that holds the server's token; or the token itself in TARRY_TOKEN")
}

// withToken returns the URL of a server with the token in it, unless the URL has its own.
func (p *Program) withToken(u *url.URL) (string, error) {
	token := p.target.token
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usagef("it begins with tarry_, as tarry token create printed it", "the token is not one word")
	case token == "" || u.User != nil || u.Query().Has("token_file"):
		return u.String(), nil
	}
	with := *u
	with.User = url.User(token)
	return with.String(), nil
}
