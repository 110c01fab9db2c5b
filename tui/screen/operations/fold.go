package operations

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

const (
	// foldFrom is the least number of consecutive records that make a group, foldGap the longest
	// pause between two of them.
	foldFrom = 3
	foldGap  = 10 * time.Second
	// foldReach bounds the records that are read unasked, because a long group hides earlier rows.
	foldReach = 10 * monitor.AuditBound
)

// fold makes one row of consecutive records of one operation: same operator, program, action and
// reason, without a pause. While a filter is set, every record stays a row of its own.
func (v *Operations) fold(rows []row) []row {
	if v.Filter() != "" {
		return rows
	}
	var out []row
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && sameOperation(&rows[n-1], &rows[n]) {
			n++
		}
		group := rows[:n:n]
		rows = rows[n:]
		if n < foldFrom {
			out = append(out, group...)
			continue
		}
		head := group[0]
		head.key, head.group = "from "+head.key, group
		head.unfolded = v.unfolded[head.key]
		out = append(out, head)
		if head.unfolded {
			for _, one := range group {
				one.inGroup = true
				out = append(out, one)
			}
		}
	}
	return out
}

func sameOperation(later, earlier *row) bool {
	if later.op != nil || earlier.op != nil {
		return false // operations of this session are rows already
	}
	a, b := later.audit, earlier.audit
	return a.Actor == b.Actor && a.Source == b.Source && a.Action == b.Action && a.TargetType == b.TargetType &&
		a.Reason == b.Reason && a.At.Sub(b.At) <= foldGap
}

// count says how many targets a group has.
func (r *row) count() string {
	return strconv.Itoa(len(r.group)) + " " +
		phrase.Nouns(len(r.group), strings.ReplaceAll(r.audit.TargetType, "_", " "))
}

func (v *Operations) groupLines(r *row) []widget.Text {
	first, last := r.group[len(r.group)-1].audit, r.audit
	ends := map[string]int64{}
	var order []string
	for i := range r.group {
		end := r.group[i].audit.Outcome
		if ends[end]++; ends[end] == 1 {
			order = append(order, end)
		}
	}
	counts := []string{" acts     " + v.env.Num(int64(len(r.group)))}
	for _, end := range order {
		counts = append(counts, v.env.Num(ends[end])+" "+end)
	}
	return []widget.Text{
		{Text: strings.Join(counts, ", ") + ", in " + widget.Age(last.At.Sub(first.At))},
		{Text: " reason   " + last.Reason},
		{Text: " audit    " + strconv.FormatInt(first.ID, 10) + " to " + strconv.FormatInt(last.ID, 10) + " by " +
			last.Actor + " through " + last.Source},
		{Role: theme.Accent, Text: " → enter lists each of them"},
	}
}
