package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/engine/diskengine"
)

func (p *Program) checkCommand() *cobra.Command {
	var repair, allowLoss, asJSON bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Verify a disk store, or a backup of one",
		Long: `Check reads all of the store in a directory, DIR or disk:DIR, that no process has open:
checksums, indexes and counters, and that each message stands in one place alone. It
changes nothing. What is wrong it says, a line each, with what would mend it; exit code 1
when there is something.

With --repair it mends what loses nothing, and checks again: files that nothing names are
removed, and a run of messages all of which can be read is written anew. What is replaced
is kept, with .damaged behind its name. Of what is left it says what would be lost. A
backup is never repaired: see tarry restore --allow-loss.

With --allow-loss too, it names what is lost, keeps all files as they are in a directory
beside them, damaged-INSTANT, and makes a sound store of every message that can be read.
Messages that had been acked or cancelled may be handed out again.`,
		Example: "  tarry check tarry-data\n  tarry check /backups/orders --json\n  tarry check tarry-data --repair --allow-loss",
		Args:    exactly("DIR"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			dir, err := storeDir(args[0])
			if err != nil {
				return err
			}
			if allowLoss && !repair {
				return usagef("--allow-loss goes with --repair", "nothing is repaired without --repair")
			}
			note := p.note()
			defer note.clear()
			progress := func(n int64) { note.say("%d MiB read", n>>20) }
			c := checked{Dir: dir}
			if repair {
				c.Done, c.rep, err = diskengine.Repair(cmd.Context(), dir, progress)
			} else {
				c.rep, err = diskengine.Check(cmd.Context(), dir, progress)
			}
			if c.rep != nil && repair && !c.rep.Sound() {
				err = p.mendLossy(cmd.Context(), &c, allowLoss, asJSON, note, progress)
			}
			note.clear()
			if c.rep == nil || err != nil {
				return ofThisMachine(p.midRepair(c.Done, err))
			}
			return p.showChecked(asJSON, &c)
		}),
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "mend what loses nothing")
	cmd.Flags().BoolVar(&allowLoss, "allow-loss", false, "mend the rest too, from what can be read")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	asSetting(cmd, "json")
	return cmd
}

// mendLossy says what a repair that loses something gives up, and does it if it may.
func (p *Program) mendLossy(ctx context.Context, c *checked, may, asJSON bool, note *note, progress func(int64)) (err error) {
	if !may {
		c.losses, err = diskengine.Losses(ctx, c.Dir, progress)
		return err
	}
	o := p.printer(asJSON)
	out, err := diskengine.Rescue(ctx, c.Dir, func(all []diskengine.Loss) error {
		note.clear()
		if asJSON {
			return nil
		}
		for _, d := range c.Done {
			_ = o.line(nil, "mended %s", d)
		}
		for _, l := range all {
			_ = o.line(nil, "lost %s", l.String())
		}
		return o.flush()
	}, progress)
	c.losses, c.Notes, c.Aside, c.rep = out.Losses, out.Notes, out.Aside, out.After
	if err == nil && !asJSON {
		c.Done, c.told = nil, true
	}
	return err
}

// midRepair is the error of a repair that was cut off.
func (p *Program) midRepair(done []string, err error) error {
	for _, line := range done {
		fmt.Fprintln(p.Stderr, shown(line))
	}
	return err
}

// checked is what came of a check, in JSON.
type checked struct {
	rep    *diskengine.Report
	losses []diskengine.Loss
	told   bool // the losses have been

	Dir       string         `json:"dir"`
	Sound     bool           `json:"sound"`
	Closed    bool           `json:"closed"` // the log ends as that of a store that was closed
	Runs      int            `json:"runs"`
	Entries   int64          `json:"entries"` // of runs, dead and alive
	Records   int64          `json:"records"` // of the log
	Findings  []checkFinding `json:"findings"`
	More      int            `json:"more"` // findings that are left out
	Leftovers []string       `json:"leftovers"`
	Done      []string       `json:"done"`   // by a repair
	Losses    []checkLoss    `json:"losses"` // what one would lose, or has lost
	Notes     []string       `json:"notes"`  // what else became of the store
	Aside     string         `json:"aside"`  // where the files are as they were
	Queues    []checkQueue   `json:"queues"`
}

type checkFinding struct {
	File   string `json:"file"`
	Offset *int64 `json:"offset"`
	What   string `json:"what"`
	Mend   string `json:"mend"`
}

type checkLoss struct {
	File     string   `json:"file"`
	Offset   *int64   `json:"offset"`
	What     string   `json:"what"`
	Messages *int64   `json:"messages"` // null: that is not known
	Keys     bool     `json:"keys"`     // of keys that are remembered
	Queues   []string `json:"queues"`
	IDs      []string `json:"ids"`
	Again    bool     `json:"again"`
}

type checkQueue struct {
	Queue    string `json:"queue"`
	Live     int64  `json:"live"`
	Dead     int64  `json:"dead"`
	Finished int64  `json:"finished"`
}

// fill takes over what a report says.
func (c *checked) fill() {
	r := c.rep
	c.Sound, c.Closed, c.Runs, c.Entries, c.Records, c.More = r.Sound(), r.Torn == nil, r.Runs, r.Entries, r.Records, r.More
	c.Findings, c.Queues = []checkFinding{}, []checkQueue{}
	c.Leftovers, c.Done = append([]string{}, r.Leftovers...), append([]string{}, c.Done...)
	for _, f := range r.Findings {
		one := checkFinding{File: f.File, What: f.What, Mend: f.Mend}
		if f.Offset >= 0 {
			one.Offset = &f.Offset
		}
		c.Findings = append(c.Findings, one)
	}
	c.Losses, c.Notes = shownLosses(c.losses), append([]string{}, c.Notes...)
	for _, q := range r.Queues {
		c.Queues = append(c.Queues, checkQueue{q.Name, q.Live, q.Dead, q.Finished})
	}
}

func shownLosses(losses []diskengine.Loss) []checkLoss {
	all := []checkLoss{}
	for _, l := range losses {
		one := checkLoss{File: l.File, What: l.What, Keys: l.Keys, Queues: append([]string{}, l.Queues...), IDs: []string{}, Again: l.Again}
		if l.Offset >= 0 {
			one.Offset = &l.Offset
		}
		if l.Messages >= 0 {
			one.Messages = &l.Messages
		}
		for _, id := range l.IDs {
			one.IDs = append(one.IDs, id.String())
		}
		all = append(all, one)
	}
	return all
}

func (p *Program) showChecked(asJSON bool, c *checked) error {
	c.fill()
	o := p.printer(asJSON)
	if asJSON {
		if err := o.row(c); err != nil {
			return err
		}
	} else {
		c.text(o)
	}
	if err := o.flush(); err != nil || c.Sound {
		return err
	}
	hint := "restore a backup, or see what --repair mends"
	if diskengine.IsBackup(c.Dir) {
		hint = "make another one elsewhere, or restore what can be read: tarry restore --allow-loss " + c.Dir + " NEW"
	}
	if len(c.losses) > 0 && c.Aside == "" {
		hint = "restore a backup, or give up what would be lost: --repair --allow-loss"
	}
	return &failedError{line: fmt.Sprintf("%s is damaged: %s", c.Dir, counted(len(c.Findings)+c.More, "finding")), hint: hint}
}

// kept says how many messages there are and how many are not any more.
func (c *checked) kept() string {
	live, dead, finished, lost, keys := int64(0), int64(0), int64(0), int64(0), int64(0)
	for _, q := range c.rep.Queues {
		live, dead, finished = live+q.Live, dead+q.Dead, finished+q.Finished
	}
	more := ""
	for _, l := range c.losses {
		switch {
		case l.Messages < 0:
			more = ", and some of which it is not known how many"
		case l.Keys:
			keys += l.Messages
		default:
			lost += l.Messages
		}
	}
	return fmt.Sprintf("kept: %d live, %d dead, %d remembered; lost: %s, %s%s", live, dead, finished,
		counted(int(lost), "message"), counted(int(keys), "remembered key"), more)
}

// text writes a report for people.
func (c *checked) text(o *printer) {
	line := func(format string, args ...any) { _ = o.line(nil, format, args...) } // flush says what fails
	for _, d := range c.Done {
		line("mended %s", d)
	}
	for _, f := range c.rep.Findings {
		mend := ""
		if f.Mend != "" {
			mend = " (it would have to " + f.Mend + ")"
		}
		line("%s%s", f.String(), mend)
	}
	if c.More > 0 {
		line("and %d more", c.More)
	}
	for _, l := range c.Leftovers {
		line("%s: nothing names it; opening removes it", l)
	}
	if !c.told {
		for _, l := range c.losses {
			line("would be lost: %s", l.String())
		}
	}
	for _, n := range c.Notes {
		line("%s", n)
	}
	if c.Aside != "" {
		line("the files as they were are in %s, with the list of what is lost; remove it when nobody needs it", c.Aside)
		if c.Sound {
			line("%s", c.kept())
		}
	}
	if !c.Sound {
		return
	}
	if !c.Closed {
		line("the log was not closed, as after a crash; it ends at %s, offset %d", c.rep.Torn.File, c.rep.Torn.Offset)
	}
	line("%s is sound: %s with %s, %s in the log", c.Dir, counted(c.Runs, "run"), counted(c.Entries, "entry"), counted(c.Records, "record"))
	if len(c.Queues) > 0 {
		o.head("QUEUE", "LIVE", "DEAD", "FINISHED")
	}
	for _, q := range c.Queues {
		_ = o.row(nil, q.Queue, q.Live, q.Dead, q.Finished)
	}
}
