package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tarryhq/tarry"
)

// Styles only stress; without colour the screen says the same.
var (
	styleHead = ansi.Style{}.Bold()
	styleGood = ansi.Style{}.ForegroundColor(ansi.Green)
	styleBad  = ansi.Style{}.Bold().ForegroundColor(ansi.Red)
	styleSoft = ansi.Style{}.Faint()
	styleHere = ansi.Style{}.Reverse(true)
)

const (
	nameWidth = 14 // least width of the first column
	cellWidth = 7  // width of the others
)

// draw returns the screen as lines that fit it: a title, the fixed top of the page, the part
// of the page that fits, and help on keys.
func (s *topScreen) draw() string {
	if s.width <= 0 || s.height <= 0 {
		return ""
	}
	head, n, line := s.page()
	s.room = max(1, s.height-2-len(head))
	if s.list() {
		s.first = max(min(s.first, s.cursor), s.cursor-s.room+1)
	}
	s.first = max(0, min(s.first, n-s.room))
	lines := append([]string{s.title()}, head...)
	for i := s.first; i < min(n, s.first+s.room); i++ {
		lines = append(lines, line(i))
	}
	lines = append(append(lines, make([]string, s.height)...)[:s.height-1], s.foot())
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, s.width, "~")
	}
	return strings.Join(lines, "\n")
}

// page returns the fixed top of a page, how many lines follow, and a function for each.
func (s *topScreen) page() (head []string, n int, line func(i int) string) {
	var lines []string
	switch {
	case s.over == "?":
		lines = helpLines
	case s.over == "!":
		head, lines = []string{styleHead.Styled(counted(len(s.problems), "problem"))}, s.wrapped()
	case s.open != "":
		head, lines = s.queueHead(), s.forecastLines()
	default:
		return s.listHead(), len(s.shown), s.row
	}
	return head, len(lines), func(i int) string { return lines[i] }
}

// padded returns a text with exactly this width.
func padded(text string, width int) string {
	text = ansi.Truncate(text, max(0, width), "~")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// title says what is watched, when that was, and whether it still answers.
func (s *topScreen) title() string {
	state := styleGood.Styled("live")
	if s.err != nil {
		state = styleBad.Styled("no answer")
	}
	return styleHead.Styled("tarry top") + "  " + state + "  " + s.now.UTC().Format("15:04:05Z") + "  " +
		shown(s.Server+s.Store) + "  " + shown(s.Version) + "  " + shown(s.Engine)
}

// stale returns a warning if the data shown is old.
func (s *topScreen) stale() []string {
	if s.err == nil {
		return nil
	}
	return []string{styleBad.Styled("what is shown is old: " + shown(oneCell(s.err.Error())))}
}

// listHead returns the sums of all queues, the first problems, and the head of the table.
func (s *topScreen) listHead() []string {
	lines := []string{fmt.Sprintf("%s; %s/s in, %s/s out", s.sums(), few(s.pushed), few(s.handled))}
	if s.more {
		lines = append(lines, styleBad.Styled(fmt.Sprintf("there are more queues; %d of them are shown", len(s.rows))))
	}
	lines = append(append(lines, s.stale()...), s.worst(s.problems, max(1, s.height/5))...)
	lines = append(lines, styleHead.Styled(s.cells(func(c *column) string {
		switch {
		case c == s.by && s.reverse:
			return c.head + "^"
		case c == s.by:
			return c.head + "v"
		}
		return c.head
	})))
	if len(s.shown) == 0 {
		lines = append(lines, "no queues")
	}
	return lines
}

// worst returns at most this many lines of problems.
func (s *topScreen) worst(all []problem, most int) (lines []string) {
	if len(all) == 0 {
		return []string{styleGood.Styled("no problems")}
	}
	for i, p := range all {
		if i == most-1 && len(all) > most {
			return append(lines, styleBad.Styled(fmt.Sprintf("! and %s; ! shows all", counted(len(all)-i, "problem"))))
		}
		lines = append(lines, styleBad.Styled("! "+shown(oneCell(about(&p))))+styleSoft.Styled("  "+shown(p.Hint)))
	}
	return lines
}

// wrapped returns all problems, with what to do about each.
func (s *topScreen) wrapped() (lines []string) {
	for _, p := range s.problems {
		text := styleBad.Styled("! "+shown(oneCell(about(&p)))) + "\n  " + shown(p.Hint)
		lines = append(lines, strings.Split(ansi.Wrap(text, s.width, ""), "\n")...)
	}
	return lines
}

// cells returns a line of the table: the name, and the columns that fit.
func (s *topScreen) cells(text func(*column) string) string {
	n := max(0, min((s.width-nameWidth)/cellWidth, len(boardColumns)-1))
	line := padded(text(boardColumns[0]), s.width-n*cellWidth)
	for _, c := range boardColumns[1 : n+1] {
		line += fmt.Sprintf("%*s", cellWidth, text(c))
	}
	return line
}

// row returns a line of the table.
func (s *topScreen) row(i int) string {
	r := s.shown[i]
	line := s.cells(func(c *column) string { return c.of(r, s.now).text })
	switch {
	case i == s.cursor:
		return styleHere.Styled(line)
	case r.bad > 0:
		return styleBad.Styled(line)
	}
	return line
}

// queueHead returns what the open queue holds, and how late its messages were.
func (s *topScreen) queueHead() []string {
	row := &queueRow{QueueInfo: tarry.QueueInfo{Queue: s.open}}
	if i := slices.IndexFunc(s.rows, func(r *queueRow) bool { return r.Queue == s.open }); i >= 0 {
		row = s.rows[i]
	}
	name := styleHead.Styled(shown(s.open))
	if row.Paused {
		name += styleBad.Styled("  paused " + pausedText(&row.QueueInfo))
	}
	late := "how late messages were: not known"
	if h := row.trend; h != nil {
		late = fmt.Sprintf("in %s: %d handled, %d retried, %d died; lateness p50 %s, p99 %s, worst %s", lasting(topSpan), h.Acked, h.Retried, h.Died,
			lateBy(row.late.P50).text, lateBy(row.late.P99).text, lateBy(row.late.Max).text)
	}
	wrong := slices.DeleteFunc(slices.Clone(s.problems), func(p problem) bool { return p.Queue != s.open })
	lines := []string{
		name,
		holds(&row.QueueInfo) + ", " + counted(int(row.Finished), "key") + " remembered, " + counted(int(row.History), "message") + " in the history",
		"next due " + orDash(away(row.NextDue, s.now)) + ", oldest ready " + orDash(away(row.OldestReady, s.now)),
		late,
	}
	lines = append(append(lines, s.stale()...), s.worst(wrong, 2)...)
	title := styleHead.Styled("due in " + zooms[s.zoom].name + ":")
	f := &s.forecast
	switch {
	case !s.known():
		title += " not known yet"
	case f.err != nil:
		title += " " + shown(oneCell(f.err.Error()))
	default:
		sum, most := sumOf(f.answer.Buckets)
		title += fmt.Sprintf(" %d", sum)
		if sum > 0 {
			title += fmt.Sprintf(", most %d at %s", most.Count, s.label(most.From))
		}
		title += fmt.Sprintf("; %d overdue", f.answer.Overdue)
	}
	return append(lines, title)
}

// label formats a time in the forecast.
func (s *topScreen) label(t time.Time) string { return t.UTC().Format(zooms[s.zoom].label) }

// forecastLines returns the steps in which messages fall due.
func (s *topScreen) forecastLines() (lines []string) {
	if !s.known() {
		return nil
	}
	_, most := sumOf(s.forecast.answer.Buckets)
	for _, b := range s.forecast.answer.Buckets {
		if b.Count > 0 {
			lines = append(lines, fmt.Sprintf("%-12s  %6s  %s", s.label(b.From), few(float64(b.Count)), bar(b.Count, most.Count)))
		}
	}
	return lines
}

// foot returns help on the keys.
func (s *topScreen) foot() string {
	switch {
	case s.typing:
		return styleHead.Styled("/") + shown(s.filter) + styleHere.Styled(" ") + styleSoft.Styled("  Enter keeps it, Esc does not")
	case s.over != "":
		return styleSoft.Styled("Esc back  q quit")
	case s.open != "":
		return styleSoft.Styled("Esc back  m h d zoom  ! problems  ? help  q quit")
	}
	n := len(s.shown)
	where := fmt.Sprintf("%d-%d of %d", min(n, s.first+1), min(n, s.first+s.room), n)
	if s.filter != "" {
		where += " with " + shown(s.filter)
	}
	return where + styleSoft.Styled("  ? help  / filter  Enter opens  < > R sort  ! problems  q quit")
}

// helpLines explain the keys and the columns, in at most 80 columns.
var helpLines = strings.Split(`up down k j PgUp PgDn Home End  move
Enter   open a queue: what falls due when, and how late messages were
m h d   there: by the minute, hour or day; Tab goes round
/       filter by a part of the name, in any case
n r s l d 5 9 p t u o   sort by the columns from the left on; again reverses
R < >   reverse; sort by the column before or after
! ?     all problems; this page
Esc     back; in the table all queues again
q ^C    quit

READY       due, and not leased       SCHED   not due yet
P50         half of the messages of the last 5 minutes were no later than that
P99         99 of 100 were no later than that
IN/S OUT/S  messages pushed and handled a second, in the last minute
NEXT        until the next message is due
OLDEST      since when the oldest ready message is due

- is: none, or not known.`, "\n")
