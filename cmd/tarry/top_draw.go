package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tarryhq/tarry"
)

// What stands out, and how. Without colour it still says the same: they are never all that
// tells.
var (
	styleHead  = ansi.Style{}.Bold()
	styleGood  = ansi.Style{}.ForegroundColor(ansi.Green)
	styleWarn  = ansi.Style{}.ForegroundColor(ansi.Yellow)
	styleBad   = ansi.Style{}.Bold().ForegroundColor(ansi.Red)
	styleSoft  = ansi.Style{}.Faint()
	styleHere  = ansi.Style{}.Reverse(true)
	styleTable = ansi.Style{}.Underline(true)
)

// draw is the screen as lines, none wider and no more than it is.
func (s *screen) draw() string {
	if s.width <= 0 || s.height <= 0 {
		return ""
	}
	lines := []string{s.title()}
	foot := s.foot()
	switch s.page {
	case pageQueue:
		lines = append(lines, s.drawQueue(s.height-2)...)
	case pageProblems:
		lines = append(lines, s.drawProblems()...)
	case pageHelp:
		lines = append(lines, helpLines...)
	default:
		lines = append(lines, s.head()...)
		lines = append(lines, s.table()...)
	}
	if over := len(lines) - (s.height - 1); over > 0 {
		lines = lines[:len(lines)-over]
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, foot)
	for i, l := range lines {
		lines[i] = s.fit(l, s.width)
	}
	return strings.Join(lines[:s.height], "\n")
}

// fit cuts a line to a width.
func (s *screen) fit(line string, width int) string {
	tail := "…"
	if s.ascii {
		tail = "~"
	}
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(line, width, tail)
}

// padded is a text that takes exactly so much room.
func (s *screen) padded(text string, width int) string {
	text = s.fit(text, width)
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// title says what is watched, and how the connection stands.
func (s *screen) title() string {
	state, style := "live", styleGood
	switch {
	case !s.link.up && !s.begun && s.link.why == "":
		state, style = "connecting", styleWarn
	case !s.link.up && s.link.again.After(s.now):
		state, style = "reconnecting in "+short(s.link.again.Sub(s.now).Round(time.Second)), styleBad
	case !s.link.up:
		state, style = "reconnecting", styleBad
	case s.link.stale:
		state, style = "the store does not answer", styleBad
	}
	right := style.Styled(state) + "  " + s.now.UTC().Format("15:04:05Z")
	left := styleHead.Styled("tarry top") + "  " + shown(s.where) + "  " + shown(s.version) + "  " + shown(s.engine)
	room := s.width - ansi.StringWidth(right) - 2
	if room < 9 {
		return right
	}
	return s.padded(left, room) + "  " + right
}

// head says what the queues hold together, and the worst that is wrong.
func (s *screen) head() []string {
	b := s.board
	if !s.begun {
		return []string{s.trouble("what the queues hold is not known yet")}
	}
	lines := []string{fmt.Sprintf("%s: %d scheduled, %d ready, %d leased, %d dead; %s/s in, %s/s out",
		counted(b.Queues, "queue"), b.Scheduled, b.Ready, b.Leased, b.Dead, fewPerSecond(b.pushed), fewPerSecond(b.handled))}
	if b.more {
		lines = append(lines, styleWarn.Styled(fmt.Sprintf("there are more queues; %d of them are shown", len(b.rows))))
	}
	if !s.link.up || s.link.stale {
		lines = append(lines, s.trouble("what is shown is old"))
	}
	return append(lines, s.worst(s.problems, max(1, s.height/5))...)
}

// trouble says what is wrong with the connection.
func (s *screen) trouble(then string) string {
	if s.link.why == "" {
		return styleWarn.Styled(then)
	}
	return styleBad.Styled(then+":") + " " + shown(oneCell(s.link.why))
}

// worst is so many lines of problems at most.
func (s *screen) worst(all []problem, most int) (lines []string) {
	if len(all) == 0 {
		return []string{styleGood.Styled("no problems")}
	}
	for i, p := range all {
		if i == most-1 && len(all) > most {
			return append(lines, styleBad.Styled(fmt.Sprintf("! and %s; ! shows all", counted(len(all)-i, "problem"))))
		}
		lines = append(lines, styleBad.Styled("! "+shown(p.about()))+styleSoft.Styled("  "+shown(p.Hint)))
	}
	return lines
}

// rows is how many rows of the table there is room for.
func (s *screen) rows() int {
	return max(1, s.height-3-len(s.head()))
}

// columns are those for which there is room.
func (s *screen) columns() (all []*column, name int) {
	const least = 14 // of the name
	all = slices.Clone(boardColumns)
	for {
		name = s.width
		for _, c := range all {
			if c.width > 0 {
				name -= c.width + 1
			}
		}
		if name >= least || len(all) == 1 {
			return all, max(name, 1)
		}
		least := 0
		for i, c := range all {
			if c != s.board.sort && c.width > 0 && (all[least].width == 0 || all[least] == s.board.sort || c.rank < all[least].rank) {
				least = i
			}
		}
		if all[least].width == 0 { // the one sorted by is left
			return all, max(name, 1)
		}
		all = slices.Delete(all, least, least+1)
	}
}

// table is the queues that are on the screen, and no others.
func (s *screen) table() []string {
	columns, name := s.columns()
	var head strings.Builder
	for _, c := range columns {
		text := c.head
		if c == s.board.sort {
			switch {
			case s.ascii && s.board.reverse:
				text += "^"
			case s.ascii:
				text += "v"
			case s.board.reverse:
				text += "▲"
			default:
				text += "▼"
			}
		}
		head.WriteString(s.cell(c, text, name))
	}
	lines := []string{styleTable.Styled(s.padded(head.String(), s.width))}
	b := s.board
	if len(b.shown) == 0 && s.begun {
		switch {
		case b.filter != "":
			lines = append(lines, "no queue has "+shown(b.filter)+" in its name")
		default:
			lines = append(lines, "no queue holds anything")
		}
	}
	for i := s.first; i < min(len(b.shown), s.first+s.rows()); i++ {
		var row strings.Builder
		for _, c := range columns {
			text := c.text(b.shown[i], s.now)
			if c.width == 0 && b.shown[i].Paused {
				text = "(paused) " + text
			}
			row.WriteString(s.cell(c, text, name))
		}
		switch r := b.shown[i]; {
		case i == s.cursor:
			lines = append(lines, styleHere.Styled(s.padded(row.String(), s.width)))
		case r.Gone:
			lines = append(lines, styleSoft.Styled(row.String()))
		case slices.ContainsFunc(s.problems, func(p problem) bool { return p.Queue == r.Queue }):
			lines = append(lines, styleBad.Styled(row.String()))
		default:
			lines = append(lines, row.String())
		}
	}
	return lines
}

// cell is one of the table: names to the left, figures to the right.
func (s *screen) cell(c *column, text string, name int) string {
	if c.width == 0 {
		return s.padded(text, name)
	}
	text = s.fit(text, c.width+1)
	return strings.Repeat(" ", max(0, c.width+1-ansi.StringWidth(text))) + text
}

// foot says what the keys do.
func (s *screen) foot() string {
	switch {
	case s.typing:
		return styleHead.Styled("/") + shown(s.board.filter) + styleHere.Styled(" ") + styleSoft.Styled("  Enter keeps it, Esc does not")
	case s.page == pageQueue:
		return styleSoft.Styled("Esc back  m h d zoom  ! problems  ? help  q quit")
	case s.page != pageQueues:
		return styleSoft.Styled("Esc back  q quit")
	}
	n := len(s.board.shown)
	where := fmt.Sprintf("%d-%d of %d", min(n, s.first+1), min(n, s.first+s.rows()), n)
	if s.board.filter != "" {
		where += " with " + shown(s.board.filter)
	}
	return where + styleSoft.Styled("  ? help  / filter  Enter opens  < > R sort  ! problems  q quit")
}

// drawProblems is all that is wrong, with what to do about it.
func (s *screen) drawProblems() []string {
	lines := []string{styleHead.Styled(counted(len(s.problems), "problem"))}
	if len(s.problems) == 0 {
		return []string{styleGood.Styled("no problems")}
	}
	for _, p := range s.problems[min(s.offset, len(s.problems)):] {
		lines = append(lines, strings.Split(ansi.Wrap(styleBad.Styled("! "+shown(p.about())), s.width, ""), "\n")...)
		lines = append(lines, strings.Split(ansi.Wrap("  "+shown(p.Hint), s.width, ""), "\n")...)
		if len(lines) > s.height {
			break
		}
	}
	return lines
}

// helpLines say what the keys do and the columns mean, within 80 columns and 22 lines.
var helpLines = []string{
	"up down k j, PgUp PgDn, Home End   move",
	"Enter        open a queue: what falls due when, and how late messages were",
	"m h d        of a queue: by the minute, hour or day; Tab goes round",
	"/            show only queues with a text in their names; Esc shows all again",
	"Esc          back        !  all problems        ^L  draw anew        q ^C  quit",
	"< >          sort by the column before or behind; R turns the order round",
	"",
	"key column   (the key sorts by it, and once more turns the order round)",
	"n   QUEUE    the queue's name",
	"r   READY    messages that are due and wait for a worker",
	"s   SCHED    messages that are not due yet",
	"l   LEASED   messages that workers have",
	"d   DEAD     messages that were given up",
	"5   P50      half of the messages of the last 5 minutes were no later than that",
	"9   P99      99 of 100 were no later than that",
	"p   IN/S     messages pushed a second, in the last minute",
	"t   OUT/S    messages handled a second, in the last minute",
	"u   NEXT     until the next message is due",
	"o   OLDEST   since when the oldest ready message is due",
	"",
	"A queue that holds nothing any more stays for a minute. - is: none, or not known.",
}

// about is what is wrong with what.
func (p *problem) about() string {
	if p.Queue == "" {
		return oneCell(p.Message)
	}
	return p.Queue + ": " + oneCell(p.Message)
}

// awayShort writes how far t lies from now, in few characters.
func awayShort(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "-"
	case d < 0:
		return short(-d) + " ago"
	default:
		return "in " + short(d)
	}
}

// sumOf is how many messages the steps of a forecast have, and the step with the most.
func sumOf(buckets []tarry.Bucket) (sum int64, most tarry.Bucket) {
	for _, b := range buckets {
		if sum += b.Count; b.Count > most.Count {
			most = b
		}
	}
	return sum, most
}
