package datapath

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Print writes the report as tables.
func (r *Report) Print(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	p("data path: %d CPUs (%s), %s, PostgreSQL %s, flush %.0f µs, %d rounds, medians\n",
		r.Machine.CPUs, r.Machine.Model, r.Machine.Go, r.Machine.PostgreSQL, r.Machine.FlushMicro, r.Rounds)
	median := func(floors []Floor, of func(Floor) float64) float64 {
		var values []float64
		for _, f := range floors {
			values = append(values, of(f))
		}
		return Middle(values)
	}
	perSecond := func(f Floor) float64 { return f.PerSecond }
	p("F1, insert and update one by one: %.0f/s on one connection, %.0f/s on sixteen; CPU of other programs meanwhile: %.2f\n\n",
		median(r.Floor1, perSecond), median(r.Floor16, perSecond),
		median(r.Floor1, func(f Floor) float64 { return f.Foreign }))
	p("%-46s %8s %6s %6s %6s %6s %7s %6s %7s %9s %9s %6s %6s\n", "scenario", "exec/s", "÷F1", "÷F1·16", "÷D1", "queued",
		"commits", "WAL B", "HOT", "CPU µs", "batch ms", "messages", "others")
	for _, o := range r.Scenarios {
		m := o.Median
		d1 := "–"
		if m.D1 > 0 {
			d1 = fmt.Sprintf("%.1f", m.D1)
		}
		p("%-46.46s %8.0f %6.2f %6.2f %6s %5.0f%% %7.3f %6.0f %7.2f %4.0f+%-4.0f %4.1f/%-5.1f %3d/%-3d %5.2f%s\n",
			o.Scenario.What, m.PerSecond, m.Floor1, m.Floor16, d1, 100*m.Queued, m.Commits, m.WALBytes, m.HotRatio,
			m.GoMicros, m.PGMicros, m.RoundP50, m.RoundP99, m.BatchP50, m.BatchP99, m.Foreign, remark(m))
	}
	if len(r.Growth) > 0 {
		p("\n%-10s %-8s %-22s %5s %12s\n", "waiting", "design", "operation", "batch", "ms p50/p99")
		for _, g := range r.Growth {
			p("%-10s %-8s %-22s %5d %6.2f/%.2f\n", thousands(g.Waiting), g.Design, g.Operation, g.Batch, g.P50, g.P99)
		}
	}
	p("\nCPU: load, engine and workers + PostgreSQL, an execution. Others: processors used by other programs.\n")
	for _, note := range r.Notes {
		p("%s\n", note)
	}
}

// PrintGoals writes each goal as met or not, in order.
func PrintGoals(out io.Writer, goals []Goal) {
	for _, g := range slices.SortedStableFunc(slices.Values(goals), func(a, b Goal) int {
		return cmp.Or(cmp.Compare(len(a.Number), len(b.Number)), cmp.Compare(a.Number, b.Number))
	}) {
		verdict := "not met"
		if g.Met {
			verdict = "met"
		}
		_, _ = fmt.Fprintf(out, "%-3s %s; goal %s, measured %s: %s\n", g.Number, g.What, g.Bar, g.Measured, verdict)
	}
}

func remark(m Result) (text string) {
	if m.OfIdeal > 0 {
		text += fmt.Sprintf(" %.0f%% of ideal", 100*m.OfIdeal)
	}
	if m.OfAlone > 0 {
		text += fmt.Sprintf(" %.2f × alone", m.OfAlone)
	}
	if m.River > 0 {
		text += fmt.Sprintf(" %.2f of River", m.River)
	}
	if m.Before > 0 {
		text += fmt.Sprintf(" %.2f of the earlier program, CPU %.2f", m.Before, m.BeforeCPU)
	}
	if m.LockWaits >= 0.005 {
		text += fmt.Sprintf(" %.0f%% of batch time in locks", 100*m.LockWaits)
	}
	if m.WaitP50 > 0 {
		text += fmt.Sprintf(" wait %.2f/%.2f ms", m.WaitP50, m.WaitP99)
	}
	if m.Failed > 0 {
		text += fmt.Sprintf(" %d batches failed", m.Failed)
	}
	return text
}
