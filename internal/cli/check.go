package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/engine/diskengine"
)

func (p *Program) checkCommand() *cobra.Command {
	var salvage string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Verify a disk store, or a backup of one",
		Long: `Check reads a whole disk store (DIR or disk:DIR) that no process has open, or a backup. It
verifies checksums, indexes and counters, and that each message is stored once. It changes
nothing. It prints a line for each fault; the exit code is 1 if there is one.

With --salvage it prints what is lost, and makes a sound store of every message that can be
read in the directory NEW, which must be missing or empty. DIR does not change. Messages
that were acked or cancelled may be leased again. With --dry-run as well it only prints what
would be lost.`,
		Example: "  tarry check tarry-data\n  tarry check /backups/orders --json\n  tarry check tarry-data --salvage tarry-new",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := storeDir(args[0])
			if err != nil {
				return err
			}
			note := p.note()
			defer note.clear()
			progress := func(n int64) { note.say("%d MiB read", n>>20) }
			c := checked{Dir: dir}
			switch {
			case cmd.Flags().Changed("salvage"):
				err = p.salvage(cmd.Context(), &c, salvage, dryRun, note, progress)
			case dryRun:
				return usagef("--dry-run goes with --salvage", "nothing is written without --salvage")
			default:
				c.rep, err = diskengine.Check(cmd.Context(), dir, progress)
			}
			note.clear()
			if err != nil {
				return localFailure(err)
			}
			return p.showChecked(&c)
		},
	}
	cmd.Flags().StringVar(&salvage, "salvage", "", "make a store of what can be read in the directory `NEW`")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what --salvage would lose")
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

var errDryRun = errors.New("nothing is written")

// salvage prints what is lost, and makes a new store from the rest.
func (p *Program) salvage(ctx context.Context, c *checked, to string, dryRun bool, note *note, progress func(int64)) error {
	to, err := storeDir(to)
	if err != nil {
		return err
	}
	o := p.printer()
	out, err := diskengine.Salvage(ctx, c.Dir, to, func(s *diskengine.Salvaged) error {
		note.clear()
		if dryRun {
			return errDryRun
		}
		for _, f := range s.Before.Findings {
			o.say("%s", f.String())
		}
		for _, l := range s.Losses {
			o.say("lost %s", l.String())
		}
		return o.flush()
	}, progress)
	c.losses, c.Notes = out.Losses, out.Notes
	if errors.Is(err, errDryRun) {
		c.rep = out.Before
		return nil
	}
	c.rep, c.From, c.Dir = out.After, c.Dir, to
	return err
}

// checked is the JSON of a check.
type checked struct {
	rep    *diskengine.Report
	losses []diskengine.Loss

	Dir       string         `json:"dir"`
	From      string         `json:"from"` // the directory that was salvaged; empty: none
	Sound     bool           `json:"sound"`
	Closed    bool           `json:"closed"` // the log ends as in a store that was closed
	Sstables  int            `json:"sstables"`
	Entries   int64          `json:"entries"` // in sstables, dead and alive
	Records   int64          `json:"records"` // in the log
	Findings  []checkFinding `json:"findings"`
	More      int            `json:"more"` // findings left out
	Leftovers []string       `json:"leftovers"`
	Losses    []checkLoss    `json:"losses"` // lost in the salvage, or what one would lose
	Notes     []string       `json:"notes"`  // other effects on the store
	Queues    []checkQueue   `json:"queues"`
}

type checkFinding struct {
	File   string `json:"file"`
	Offset *int64 `json:"offset"`
	What   string `json:"what"`
}

type checkLoss struct {
	File     string   `json:"file"`
	Offset   *int64   `json:"offset"`
	What     string   `json:"what"`
	Messages *int64   `json:"messages"` // null: unknown
	Keys     bool     `json:"keys"`     // Messages counts remembered keys
	Queues   []string `json:"queues"`
	IDs      []string `json:"ids"`
	Again    bool     `json:"again"`
}

type checkQueue struct {
	Queue    string `json:"queue"`
	Live     int64  `json:"live"`
	Dead     int64  `json:"dead"`
	Finished int64  `json:"finished"` // remembered keys
	History  int64  `json:"history"`  // finished messages that are listed
}

// fill sets the exported fields from the report.
func (c *checked) fill() {
	r := c.rep
	c.Sound, c.Closed, c.Sstables, c.Entries, c.Records, c.More = r.Sound(), r.Torn == nil, r.Tables, r.Entries, r.Records, r.More
	c.Findings, c.Queues = []checkFinding{}, []checkQueue{}
	c.Leftovers = append([]string{}, r.Leftovers...)
	for _, f := range r.Findings {
		c.Findings = append(c.Findings, checkFinding{f.File, known(f.Offset), f.What})
	}
	c.Losses, c.Notes = []checkLoss{}, append([]string{}, c.Notes...)
	for _, l := range c.losses {
		ids := []string{}
		for _, id := range l.IDs {
			ids = append(ids, id.String())
		}
		c.Losses = append(c.Losses, checkLoss{l.File, known(l.Offset), l.What, known(l.Messages), l.Keys, append([]string{}, l.Queues...), ids, l.Again})
	}
	for _, q := range r.Queues {
		c.Queues = append(c.Queues, checkQueue{q.Name, q.Live, q.Dead, q.Finished, q.Listed})
	}
}

// known returns nil for an unknown number, which is negative.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func (p *Program) showChecked(c *checked) error {
	c.fill()
	o := p.printer()
	if p.json {
		o.object(c)
	} else {
		c.text(o)
	}
	if err := o.flush(); err != nil || c.Sound {
		return err
	}
	hint := "restore a sound backup, or salvage the rest: tarry check " + c.Dir + " --salvage NEW"
	return failedf(nil, hint, "%s is damaged: %s", c.Dir, counted(len(c.Findings)+c.More, "finding"))
}

// kept says how many messages the new store has and how many were lost.
func (c *checked) kept() string {
	live, dead, finished, lost, keys := int64(0), int64(0), int64(0), int64(0), int64(0)
	for _, q := range c.rep.Queues {
		live, dead, finished = live+q.Live, dead+q.Dead, finished+q.Finished
	}
	least := ""
	for _, l := range c.losses {
		switch {
		case l.Messages < 0:
			least = "at least "
		case l.Listed:
		case l.Keys:
			keys += l.Messages
		default:
			lost += l.Messages
		}
	}
	return fmt.Sprintf("kept: %d live, %d dead, %d remembered; lost: %s%s, %s", live, dead, finished,
		least, counted(int(lost), "message"), counted(int(keys), "remembered key"))
}

// text writes the report for people.
func (c *checked) text(o *printer) {
	for _, f := range c.rep.Findings {
		o.say("%s", f.String())
	}
	if c.More > 0 {
		o.say("and %d more", c.More)
	}
	for _, l := range c.Leftovers {
		o.say("%s: nothing names it; opening removes it", l)
	}
	if c.From == "" {
		for _, l := range c.losses {
			o.say("would be lost: %s", l.String())
		}
	}
	for _, n := range c.Notes {
		o.say("%s", n)
	}
	if c.From != "" && c.Sound {
		o.say("%s", c.kept())
	}
	if !c.Sound {
		return
	}
	if !c.Closed {
		o.say("the log was not closed, as after a crash; it ends at %s, offset %d", c.rep.Torn.File, c.rep.Torn.Offset)
	}
	o.say("%s is sound: %s with %s, %s in the log", c.Dir, counted(c.Sstables, "sstable"), counted(c.Entries, "entry"), counted(c.Records, "record"))
	if len(c.Queues) > 0 {
		o.head("QUEUE", "LIVE", "DEAD", "FINISHED", "REMEMBERED")
	}
	for _, q := range c.Queues {
		o.row(nil, q.Queue, q.Live, q.Dead, q.History, q.Finished)
	}
}
