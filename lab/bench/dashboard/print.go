package dashboard

import (
	"fmt"
	"io"
)

// Print writes the report as two tables.
func (r *Report) Print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "dashboard at %d executions, %d waiting; PostgreSQL %s, %d CPUs, %d rounds\n\n",
		r.Size.Executions, r.Size.Queued, r.PostgreSQL, r.CPUs, r.Rounds)
	table := func(title string, costs []Cost) {
		_, _ = fmt.Fprintf(out, "%-32s %10s %10s %11s %10s\n", title, "ms", "worst ms", "statements", "rows")
		for _, c := range costs {
			_, _ = fmt.Fprintf(out, "%-32s %10.2f %10.2f %11.1f %10d\n", c.Name, c.Milliseconds, c.Worst, c.Statements,
				c.Rows)
		}
	}
	table("polled by views", r.Polls)
	_, _ = fmt.Fprintf(out, "%-32s %10.2f   of %.0f\n\n", "one poll of everything", r.Poll, r.Budget)
	table("read on demand", r.Looks)
}
