package measure

import (
	"fmt"
	"io"
)

// published returns the throughput that the existing executor's documents give for one action with the
// same limit.
func published(c Config) float64 {
	if c.Actions != 1 || c.Rate > 0 || c.Workflow != "" {
		return 0
	}
	return map[int]float64{5: 200, 10: 500}[c.Limit]
}

// Print writes reports as a table.
func Print(out io.Writer, reports []Report) {
	ms := func(seconds float64) string { return fmt.Sprintf("%.1f", seconds*1000) }
	_, _ = fmt.Fprintf(out, "%-30s %8s %8s %10s | %-24s | %-24s | %7s %7s %5s %7s\n", "profile", "executed", "per s",
		"published",
		"requested→running ms", "completed→next ms", "commits", "WAL B", "HOT", "CPU ms")
	for _, r := range reports {
		next := "-"
		if r.Config.Workflow != "" {
			next = fmt.Sprintf("task %s, late %s", ms(r.EarlyTask), ms(r.LateTask))
		} else if r.Config.Limit > 0 {
			next = fmt.Sprintf("p50 %s p99 %s", ms(r.NextP50), ms(r.NextP99))
		}
		known := "-"
		if r.Published > 0 {
			known = fmt.Sprintf("%.0f", r.Published)
		}
		_, _ = fmt.Fprintf(out, "%-30s %8d %8.0f %10s | %-24s | %-24s | %7.3f %7.0f %5.2f %7.1f\n", r.Config.Profile,
			r.Completed, r.PerSecond, known,
			fmt.Sprintf("p50 %s p99 %s", ms(r.StartP50), ms(r.StartP99)), next, r.CommitsPerExecution,
			r.WALBytesPerExecution, r.HotRatio, 1000*r.CPU)
	}
	if len(reports) > 0 {
		r := reports[0]
		_, _ = fmt.Fprintln(out,
			"task, late: the duration of a workflow's task in the first fifth and in the last")
		_, _ = fmt.Fprintln(out,
			"published: from the existing executor's documents for the same limit, on another machine")
		_, _ = fmt.Fprintf(out,
			"%d CPUs, %s, PostgreSQL %s; %d engine, %d workers × %d; engine, workers and servers share the machine\n",
			r.Machine.CPUs, r.Machine.GoVersion, r.Machine.PostgreSQL, r.Config.Replicas, r.Config.Workers,
			r.Config.Concurrency)
	}
}
