package datapath

import (
	"fmt"
	"io"
	"strings"
)

// Print writes the report as tables for people.
func (r *Report) Print(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	p("data path: %d CPUs (%s), %s, PostgreSQL %s, flush %.0f µs, %d rounds, medians\n",
		r.Machine.CPUs, r.Machine.Model, r.Machine.Go, r.Machine.PostgreSQL, r.Machine.FlushMicro, r.Rounds)
	p("F1, insert and update one by one: %.0f/s on one connection, %.0f/s on sixteen; CPU used by others while it ran: %.2f\n\n",
		floorMedian(r.Floor1), floorMedian(r.Floor16), othersMedian(r.Floor1))
	p("%-46s %8s %6s %6s %6s %6s %7s %6s %7s %9s %9s %6s %6s\n", "scenario", "exec/s", "÷F1", "÷F1·16", "÷D1", "queued",
		"commits", "WAL B", "HOT", "CPU µs", "round ms", "batch", "others")
	for _, o := range r.Scenarios {
		m := o.Median
		p("%-46s %8.0f %6.2f %6.2f %6s %5.0f%% %7.3f %6.0f %7.2f %4.0f+%-4.0f %4.1f/%-5.1f %3d/%-3d %5.2f%s\n",
			cut(o.Scenario.What, 46), m.PerSecond, m.Floor1, m.Floor16, orDash(m.D1), 100*m.Queued, m.Commits,
			m.WALBytes, m.HotRatio,
			m.GoMicros, m.PGMicros, m.RoundP50, m.RoundP99, m.BatchP50, m.BatchP99, m.Foreign, remark(m))
	}
	if len(r.Growth) > 0 {
		p("\n%-10s %-8s %-22s %5s %12s\n", "waiting", "design", "operation", "batch", "ms p50/p99")
		for _, g := range r.Growth {
			p("%-10s %-8s %-22s %5d %6.2f/%.2f\n", thousands(g.Waiting), g.Design, g.Operation, g.Batch, g.P50, g.P99)
		}
	}
	p("\n")
	PrintGoals(out, r.Goals)
	p("\nCPU: load, engine and workers + PostgreSQL, an execution. Others: processors that something else used.\n")
	for _, note := range r.Notes {
		p("%s\n", note)
	}
}

// PrintGoals writes each goal as met or not.
func PrintGoals(out io.Writer, goals []Goal) {
	for _, g := range goals {
		_, _ = fmt.Fprintf(out, "%-3s %-8s %s: %s; bar %s\n", g.Number, verdict(g), g.What, g.Measured, g.Bar)
	}
}

func verdict(g Goal) string {
	if g.Met {
		return "met"
	}
	return "not met"
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
		text += fmt.Sprintf(" %.2f of before, CPU %.2f", m.Before, m.BeforeCPU)
	}
	if m.LockWaits >= 0.005 {
		text += fmt.Sprintf(" %.0f%% of rounds in locks", 100*m.LockWaits)
	}
	if m.WaitP50 > 0 {
		text += fmt.Sprintf(" wait %.2f/%.2f ms", m.WaitP50, m.WaitP99)
	}
	if m.Failed > 0 {
		text += fmt.Sprintf(" %d rounds failed", m.Failed)
	}
	return text
}

func orDash(value float64) string {
	if value == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", value)
}

func cut(text string, n int) string {
	letters := []rune(text)
	if len(letters) <= n {
		return text + strings.Repeat(" ", n-len(letters))
	}
	return string(letters[:n-1]) + "…"
}

func floorMedian(floors []Floor) float64 {
	var values []float64
	for _, f := range floors {
		values = append(values, f.PerSecond)
	}
	return middle(values)
}

func othersMedian(floors []Floor) float64 {
	var values []float64
	for _, f := range floors {
		values = append(values, f.Foreign)
	}
	return middle(values)
}
