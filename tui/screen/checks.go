package screen

import (
	"slices"
	"strings"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// checks lists the checks whose names begin so, the worst first.
func (e *Env) checks(prefix string) []monitor.Check {
	if e.Data.Checks == nil {
		return nil
	}
	list := []monitor.Check{}
	for _, c := range e.Data.Checks.List {
		if strings.HasPrefix(c.Name, prefix) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b monitor.Check) int { return a.Status.Worst() - b.Status.Worst() })
	return list
}

// FailedChecks is how many checks have found a problem.
func (e *Env) FailedChecks() (n int) {
	for _, c := range e.checks("") {
		if c.Status == monitor.CheckProblem {
			n++
		}
	}
	return n
}

// CheckLook is how a check looks.
func (e *Env) CheckLook(status monitor.CheckStatus) theme.State {
	g := &e.Theme.Glyphs
	switch status {
	case monitor.CheckOK:
		return theme.State{Glyph: g.Done, Role: theme.Good}
	case monitor.CheckWarning:
		return theme.State{Glyph: g.Warning, Role: theme.Warn}
	case monitor.CheckProblem:
		return theme.State{Glyph: g.Failed, Role: theme.Bad}
	default:
		return theme.State{Glyph: "?", Role: theme.Dim}
	}
}

// CheckLines are the checks whose names begin so, the worst first, each with what
// was found and the fix: at most h lines of w cells. What finds no room is counted.
func (e *Env) CheckLines(w, h int, prefix string) []string {
	list := e.checks(prefix)
	if list == nil {
		return e.checksMissing(w, h)
	}
	var lines []string
	for i := range list {
		one := e.checkLines(&list[i], w)
		switch {
		case len(lines)+len(one) <= h:
			lines = append(lines, one...)
			continue
		case h <= 0:
			return lines
		}
		return append(lines[:min(len(lines), h-1)], e.more(len(list)-i))
	}
	return lines
}

// more counts what finds no room.
func (e *Env) more(n int) string { return e.Dim("… " + e.Num(int64(n)) + " more") }

// checkNameWidth is the room that the names of checks take where there is much.
const checkNameWidth = 24

// checkLines is one check: its sign and name, what was found, and the fix.
func (e *Env) checkLines(c *monitor.Check, w int) []string {
	sign := e.Look(e.CheckLook(c.Status), "")
	first, indent := sign+" "+widget.Left(widget.Clean(c.Name), checkNameWidth)+" ", checkNameWidth+3
	text := widget.Clean(c.Text)
	if w < 90 { // no room for two columns
		first, indent, text = sign+" ", 2, widget.Clean(c.Name)+": "+text
	}
	var lines []string
	for _, part := range widget.Wrap(text, w-indent) {
		lines, first = append(lines, first+part), widget.Blank(indent)
	}
	if c.Fix != "" && c.Status != monitor.CheckOK {
		for _, part := range widget.Wrap("Fix: "+widget.Clean(c.Fix), w-indent) {
			lines = append(lines, widget.Blank(indent)+e.Dim(part))
		}
	}
	return lines
}

func (e *Env) checksMissing(w, h int) []string {
	if h < 1 {
		return nil
	}
	if err := e.Data.Fresh(FeedChecks).Err; err != nil {
		text := e.Theme.Glyphs.Failed + " the checks cannot be made: " + widget.Clean(err.Error())
		return []string{e.Paint(theme.Bad, widget.Cut(text, w))}
	}
	return []string{e.Dim("Looking …")}
}

// CheckSummary is one line that counts the checks, and one with the worst.
func (e *Env) CheckSummary(w int, prefix string) []string {
	list := e.checks(prefix)
	head := " " + e.Head(FeedChecks, "CHECKS")
	if list == nil {
		return []string{head + "  " + strings.Join(e.checksMissing(w-12, 1), "")}
	}
	if len(list) == 0 {
		return []string{head + "  " + widget.Unknown}
	}
	counts := map[monitor.CheckStatus]int64{}
	for i := range list {
		counts[list[i].Status]++
	}
	words := []string{"failed", "warning", "unknown", "ok"}
	for i, status := range []monitor.CheckStatus{
		monitor.CheckProblem, monitor.CheckWarning, monitor.CheckUnknown, monitor.CheckOK,
	} {
		if n := counts[status]; n > 0 {
			head += "  " + e.Look(e.CheckLook(status), "") + " " + e.Num(n) + " " + words[i]
		}
	}
	lines := []string{widget.Cut(head, w)}
	if worst := list[0]; worst.Status != monitor.CheckOK {
		text := widget.Clean(worst.Name) + "  " + widget.Clean(worst.Text)
		lines = append(lines, widget.Cut("   "+e.Look(e.CheckLook(worst.Status), "")+" "+text, w))
	}
	return lines
}

// blockName is the room of the names in a block of checks.
const blockName = 22

// CheckBlock is a line for each check, the worst first, below a title, where at least
// some find room in h lines; else what CheckSummary says.
func (e *Env) CheckBlock(w, h int) []string {
	list := e.checks("")
	if len(list) == 0 || h < 4 {
		return e.CheckSummary(w, "")
	}
	note := "read-only"
	if every := e.Data.Fresh(FeedChecks).Every; every > 0 {
		note = "each " + widget.Short(every) + ", " + note
	}
	lines := []string{widget.Spread(e.Head(FeedChecks, "CONSISTENCY CHECKS"), e.Dim(note), w)}
	for i := range list {
		if len(lines) == h-1 && len(list)-i > 1 {
			return append(lines, e.more(len(list)-i))
		}
		name := widget.Left(widget.CutMiddle(widget.Clean(list[i].Name), blockName), blockName)
		text := widget.Cut(widget.Clean(list[i].Text), max(0, w-blockName-3))
		lines = append(lines, e.Look(e.CheckLook(list[i].Status), "")+" "+name+" "+text)
	}
	return lines
}

// LevelState is the state that a level of alerts looks like.
func LevelState(level alerting.Level) string {
	if level == alerting.LevelInfo {
		return "idle"
	}
	return string(level)
}
