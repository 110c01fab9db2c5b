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
	// foldFrom is how many acts in a row make one operation, foldGap the longest time
	// between two of them.
	foldFrom = 3
	foldGap  = 10 * time.Second
	// foldReach is how many acts are read without being asked for, so that a long
	// operation does not keep earlier ones out of sight.
	foldReach = 10 * monitor.AuditBound
)

// fold makes one row of the acts of one operation: what one operator did with one
// program, for one reason, without a pause. Those that were unfolded follow it. A filter
// lists the acts themselves.
func (v *Operations) fold(rows []row) []row {
	if v.Filter() != "" {
		return rows
	}
	var out []row
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && continues(&rows[n-1], &rows[n]) {
			n++
		}
		if n < foldFrom {
			out, rows = append(out, rows[:n]...), rows[n:]
			continue
		}
		head := rows[0]
		head.key, head.acts = "from "+head.key, rows[:n:n]
		head.unfolded = v.unfolded[head.key]
		out = append(out, head)
		if head.unfolded {
			for i := range head.acts {
				one := head.acts[i]
				one.within = true
				out = append(out, one)
			}
		}
		rows = rows[n:]
	}
	return out
}

// continues reports whether an act and the one that came before it are of one operation.
func continues(later, earlier *row) bool {
	if later.op != nil || earlier.op != nil {
		return false // this session knows its own
	}
	a, b := later.audit, earlier.audit
	return a.Actor == b.Actor && a.Source == b.Source && a.Action == b.Action && a.TargetType == b.TargetType &&
		a.Reason == b.Reason &&
		a.At.Sub(b.At) <= foldGap
}

// toggle unfolds the operation of a row or folds it. It is false for a single act.
func (v *Operations) toggle(r *row) bool {
	if len(r.acts) == 0 {
		return false
	}
	if v.unfolded == nil {
		v.unfolded = map[string]bool{}
	}
	v.unfolded[r.key] = !v.unfolded[r.key]
	v.Rebuild(true)
	return true
}

// target names what a row was done to.
func (r *row) target() string {
	switch {
	case r.within:
		return "  " + r.audit.Target
	case len(r.acts) > 0:
		sign := "▸ "
		if r.unfolded {
			sign = "▾ "
		}
		return sign + r.counted()
	default:
		return r.says.target
	}
}

// counted says how many things the acts of a row were done to.
func (r *row) counted() string {
	return strconv.Itoa(len(r.acts)) + " " + phrase.Nouns(len(r.acts), strings.ReplaceAll(r.audit.TargetType, "_", " "))
}

// foldedLines say what an operation of several acts was.
func (v *Operations) foldedLines(r *row) []widget.Text {
	first, last := r.acts[len(r.acts)-1].audit, r.audit
	ends := map[string]int{}
	var order []string
	for i := range r.acts {
		end := r.acts[i].audit.Outcome
		if ends[end]++; ends[end] == 1 {
			order = append(order, end)
		}
	}
	counts := []string{" acts     " + v.env.Num(int64(len(r.acts)))}
	for _, end := range order {
		counts = append(counts, v.env.Num(int64(ends[end]))+" "+end)
	}
	span := last.At.Sub(first.At)
	return []widget.Text{
		{Text: strings.Join(counts, ", ") + ", in " + widget.Age(span)},
		{Text: " reason   " + last.Reason},
		{Text: " audit    " + strconv.FormatInt(first.ID, 10) + " to " + strconv.FormatInt(last.ID, 10) + " by " +
			last.Actor + " through " + last.Source},
		{Role: theme.Accent, Text: " → enter lists each of them"},
	}
}

// Bundle is an operation of several acts as it leaves the dashboard.
type Bundle []Operation

// bundle holds the acts of a folded row; of one that was unfolded they are rows themselves.
func bundle(r *row) Bundle {
	if r.unfolded {
		return nil
	}
	acts := make(Bundle, len(r.acts))
	for i := range r.acts {
		acts[i] = recorded(r.acts[i].audit)
	}
	return acts
}
