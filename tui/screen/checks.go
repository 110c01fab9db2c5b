package screen

import (
	"cmp"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// checks lists the checks with a prefix, the worst first; nil until they were read.
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
	slices.SortStableFunc(list, func(a, b monitor.Check) int { return cmp.Compare(a.Status.Worst(), b.Status.Worst()) })
	return list
}

// CheckLook is the look of a check.
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

// CheckLines are the checks with a prefix, the worst first, each with its finding and its fix, in at
// most h lines of w cells. The last line counts the checks that do not fit.
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

func (e *Env) more(n int) string { return e.Dim("… " + e.Num(int64(n)) + " more") }

// checkLines is the name, the finding and the fix of a check, in two columns if there is room.
func (e *Env) checkLines(c *monitor.Check, w int) []string {
	const nameWidth = 24
	sign := e.Look(e.CheckLook(c.Status), "")
	first, indent := sign+" "+widget.Left(widget.Clean(c.Name), nameWidth)+" ", nameWidth+3
	text := widget.Clean(c.Text)
	if w < 90 {
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
	err := e.Data.Fresh(FeedChecks).Err
	switch {
	case h < 1:
		return nil
	case err == nil:
		return []string{e.Dim("Reading the checks …")}
	default:
		text := e.Theme.Glyphs.Failed + " the checks cannot be read: " + widget.Clean(err.Error())
		return []string{e.Paint(theme.Bad, widget.Cut(text, w))}
	}
}

// CheckSummary is a line that counts the checks, and one with the worst check unless it is OK.
func (e *Env) CheckSummary(w int, prefix string) []string {
	list := e.checks(prefix)
	head := " " + e.Head(FeedChecks, "CHECKS")
	switch {
	case list == nil:
		return []string{head + "  " + strings.Join(e.checksMissing(w-12, 1), "")}
	case len(list) == 0:
		return []string{head + "  " + widget.Unknown}
	}
	counts := map[monitor.CheckStatus]int64{}
	for i := range list {
		counts[list[i].Status]++
	}
	for _, count := range []struct {
		status monitor.CheckStatus
		text   string
	}{
		{monitor.CheckProblem, "failed"},
		{monitor.CheckWarning, "warning"},
		{monitor.CheckUnknown, "unknown"},
		{monitor.CheckOK, "ok"},
	} {
		if n := counts[count.status]; n > 0 {
			head += "  " + e.Look(e.CheckLook(count.status), "") + " " + e.Num(n) + " " + count.text
		}
	}
	lines := []string{widget.Cut(head, w)}
	if worst := list[0]; worst.Status != monitor.CheckOK {
		text := widget.Clean(worst.Name) + "  " + widget.Clean(worst.Text)
		lines = append(lines, widget.Cut("   "+e.Look(e.CheckLook(worst.Status), "")+" "+text, w))
	}
	return lines
}

// CheckBlock is a line for each check, the worst first, below a title. With less than four lines it is
// CheckSummary.
func (e *Env) CheckBlock(w, h int) []string {
	const nameWidth = 22
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
		name := widget.Left(widget.CutMiddle(widget.Clean(list[i].Name), nameWidth), nameWidth)
		text := widget.Cut(widget.Clean(list[i].Text), max(0, w-nameWidth-3))
		lines = append(lines, e.Look(e.CheckLook(list[i].Status), "")+" "+name+" "+text)
	}
	return lines
}

// LevelState is the state with the look of an alert level.
func LevelState(level alerting.Level) string {
	if level == alerting.LevelInfo {
		return "idle"
	}
	return string(level)
}
