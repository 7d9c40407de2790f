package cli

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/internal/cli/source"
)

func (p *Program) copyAsynqCommand() *cobra.Command {
	var byType bool
	cmd := p.sourceCommand(&cobra.Command{
		Use:   "asynq FROM TO [QUEUE…]",
		Short: "Copy the scheduled tasks of asynq",
		Long: `Copy pushes the tasks that asynq has scheduled or will retry, of all its queues or of those
named. FROM is the URL of its Redis. A task's id becomes the key, its payload the body, its
type the header asynq-type.`,
		Example: "  tarry copy asynq redis://127.0.0.1:6379/0 http://127.0.0.1:8277 --by-type --move",
		Args: func(cmd *cobra.Command, args []string) error {
			return checkArgs(cmd, len(args), []string{"FROM", "TO"}, -1)
		},
	}, func(ctx context.Context, from *url.URL, queues []string) ([]source.Source, func(), error) {
		return source.Asynq(ctx, from, queues, byType)
	})
	cmd.Flags().BoolVar(&byType, "by-type", false, "to queues named as the types, with dots for colons, not as asynq's queues")
	return cmd
}

func (p *Program) copyZSetCommand() *cobra.Command {
	var z source.ZSet
	cmd := p.sourceCommand(&cobra.Command{
		Use:   "zset FROM TO QUEUE",
		Short: "Copy the members of a sorted set of Redis",
		Long: `Copy pushes the members of a sorted set, whose scores are due times. FROM is the URL of a
Redis. A member becomes body and key; one that cannot be a key has its SHA-256 for one.`,
		Example: `  tarry copy zset redis://127.0.0.1:6379/0 disk:tarry-data mail --set delayed --per-second 1000 --move
  tarry copy zset @redis.url disk:tarry-data mail --set delayed --per-second 1 --body 'mail:{}#text'`,
		Args: exactly("FROM", "TO", "QUEUE"),
	}, func(_ context.Context, from *url.URL, args []string) ([]source.Source, func(), error) {
		if z.Queue = args[0]; z.Set == "" || z.PerSecond <= 0 {
			return nil, nil, usagef("as in --set delayed --per-second 1000", "--set or --per-second is missing")
		}
		return z.Open(from)
	})
	flags := cmd.Flags()
	flags.StringVar(&z.Set, "set", "", "key of the sorted set")
	flags.Float64Var(&z.PerSecond, "per-second", 0, "what scores count in a second: 1 for seconds, 1000 for milliseconds")
	flags.StringVar(&z.Body, "body", "", "where the body is: KEY, or KEY#FIELD of a hash, with {} for the member (unset: the member)")
	return cmd
}

func (p *Program) copyTableCommand() *cobra.Command {
	var t source.Table
	cmd := p.sourceCommand(&cobra.Command{
		Use:   "table FROM TO QUEUE",
		Short: "Copy the rows of a table of PostgreSQL or MySQL",
		Long: `Copy pushes the rows of a table that wait. FROM is the URL of a PostgreSQL, MySQL or MariaDB.
A column may be any expression of SQL.`,
		Example: `  tarry copy table @database.url http://127.0.0.1:8277 mail --table timers --due run_at --body payload
  tarry copy table @database.url disk:tarry-data mail --table timers --due run_at --body payload \
    --where "status = 0" --mark "status = 9" --move`,
		Args: exactly("FROM", "TO", "QUEUE"),
	}, func(ctx context.Context, from *url.URL, args []string) ([]source.Source, func(), error) {
		if t.Queue = args[0]; t.Table == "" || t.Due == "" || t.Body == "" {
			return nil, nil, usagef("as in --table timers --due run_at --body payload", "--table, --due or --body is missing")
		}
		return t.Open(ctx, from)
	})
	flags := cmd.Flags()
	flags.StringVar(&t.Table, "table", "", "the table")
	flags.StringVar(&t.ID, "id", "id", "column that is unique")
	flags.StringVar(&t.Due, "due", "", "column of the due time, UTC where it has no zone")
	flags.StringVar(&t.Body, "body", "", "column of the body")
	flags.StringVar(&t.Key, "key", "", "column of the key (unset: --id)")
	flags.StringVar(&t.Where, "where", "", "condition of rows that wait (unset: all)")
	flags.StringVar(&t.Mark, "mark", "", "what --move sets, as in \"status = 9\" (unset: it deletes the row)")
	return cmd
}
