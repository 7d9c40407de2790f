package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// drawQueue is a queue in so many lines.
func (s *screen) drawQueue(height int) []string {
	d := &s.detail
	row := s.board.rows[d.queue]
	if row == nil {
		row = &boardRow{LiveQueue: wire.LiveQueue{Queue: d.queue}}
	}
	info := row.info()
	name := styleHead.Styled(shown(d.queue))
	if info.Paused {
		name += styleWarn.Styled("  paused " + pausedText(&info))
	}
	lines := []string{
		name,
		fmt.Sprintf("%d scheduled, %d ready, %d leased, %d dead, %s remembered", row.Scheduled, row.Ready, row.Leased, row.Dead, counted(int(row.Finished), "key")),
		"next due " + awayShort(info.NextDue, s.now) + ", oldest ready " + awayShort(info.OldestReady, s.now) + s.rates(row),
	}
	var wrong []problem
	for _, p := range s.problems {
		if p.Queue == d.queue {
			wrong = append(wrong, p)
		}
	}
	if !s.link.up || s.link.stale {
		lines = append(lines, s.trouble("what is shown is old"))
	}
	lines = append(lines, s.worst(wrong, 2)...)
	late := d.trend != nil
	room := height - len(lines) - 2 // of the forecast's title and scale
	forecast := room
	if late {
		room -= 2 // of the titles of lateness and of what was handled
		forecast = max(1, room/2)
	}
	lines = append(lines, s.drawForecast(forecast)...)
	switch {
	case d.failed != nil:
		return append(lines, styleWarn.Styled("how late messages were:")+" "+shown(oneCell(d.failed.Error())))
	case !late:
		return lines
	}
	steps := &d.trend.Steps
	ms := make([]float64, len(steps.Lateness.P99))
	for i, p := range steps.Lateness.P99 {
		if p != nil {
			ms[i] = *p
		}
	}
	worst := "nothing was handed out"
	if t := &d.trend.Total.Lateness; latenessKnown(t) {
		worst = fmt.Sprintf("99 of 100 in the last %s: p50 %s, p99 %s, worst %s", lasting(d.trend.Span.D()), brief(t.P50), brief(t.P99), brief(t.Max))
	}
	handled := make([]float64, len(steps.Acked))
	for i, n := range steps.Acked {
		handled[i] = float64(n)
	}
	rest := room - forecast
	lines = append(lines, styleHead.Styled("how late: ")+worst)
	lines = append(lines, s.bars(ms, max(1, (rest+1)/2), false)...)
	lines = append(lines, styleHead.Styled("handled: ")+fmt.Sprintf("%d; dead %d, retried %d", d.trend.Total.Acked, d.trend.Total.Died, d.trend.Total.Retried))
	return append(lines, s.bars(handled, max(1, rest/2), false)...)
}

// rates is what happens to a queue, where that is kept.
func (s *screen) rates(row *boardRow) string {
	if row.Trend == nil {
		return ""
	}
	return fmt.Sprintf(", %s/s in, %s/s out", fewPerSecond(row.PushedPerS), fewPerSecond(row.AckedPerS))
}

// drawForecast is what falls due when, with bars of so many lines.
func (s *screen) drawForecast(height int) []string {
	d, z := &s.detail, &zooms[s.zoom]
	title := styleHead.Styled("due in " + z.name)
	known := d.zoom == s.zoom && !d.at.IsZero()
	switch {
	case known && d.forecast != nil:
		return []string{title + ": " + shown(oneCell(d.forecast.Error()))}
	case !known:
		return append([]string{title + ": not known yet"}, make([]string, height+1)...)
	}
	sum, most := sumOf(d.buckets)
	title += fmt.Sprintf(": %d", sum)
	if sum > 0 {
		when := "now" // the first step has begun
		if most.From.After(s.now) {
			when = awayShort(most.From, s.now)
		}
		title += fmt.Sprintf(", most %d %s", most.Count, when)
	}
	counts := make([]float64, len(d.buckets))
	for i, b := range d.buckets {
		counts[i] = float64(b.Count)
	}
	return append(append([]string{title}, s.bars(counts, height, true)...), s.scale(z, len(counts)))
}

// barWidth is how wide a bar is when so many are shown.
func (s *screen) barWidth(n int) int { return max(1, min(4, s.width/max(1, n))) }

// scale says where on the bars of a forecast which time is.
func (s *screen) scale(z *zoom, n int) string {
	width := s.barWidth(n)
	var b strings.Builder
	for i := 0; i < n; i += max(1, n/4) {
		if at := i * width; at >= ansi.StringWidth(b.String()) {
			b.WriteString(strings.Repeat(" ", at-ansi.StringWidth(b.String())))
			if i == 0 {
				b.WriteString("now")
			} else {
				b.WriteString("+" + tarry.FormatDuration((time.Duration(i) * z.step)))
			}
		}
	}
	return styleSoft.Styled(b.String())
}

var (
	blocks      = []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	asciiBlocks = []string{" ", ".", ":", "|", "#"}
)

// bars draws values as columns of so many lines, the largest as high as that. What is not
// nothing shows. Of more than there is room for it draws the first, or the last.
func (s *screen) bars(values []float64, height int, first bool) []string {
	glyphs := blocks
	if s.ascii {
		glyphs = asciiBlocks
	}
	width := s.barWidth(len(values))
	if room := s.width / width; len(values) > room {
		if first {
			values = values[:room]
		} else {
			values = values[len(values)-room:]
		}
	}
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	full := len(glyphs) - 1
	lines := make([]string, height)
	for line := range lines {
		var b strings.Builder
		below := (height - 1 - line) * full
		for _, v := range values {
			level := 0
			if v > 0 && most > 0 {
				level = max(1, int(v/most*float64(height*full)+0.5))
			}
			b.WriteString(strings.Repeat(glyphs[max(0, min(full, level-below))], width))
		}
		lines[line] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
