package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/lab/query"
)

// counts are the numbers of executions that the demo prints every second.
type counts struct {
	Requested, Waiting, Scheduled, Running int64
	Completed, Failed, Other               int64
	Repeated                               int64
	Outbox                                 int64
}

// live is the number of executions that have not ended.
func (c counts) live() int64 { return c.Requested + c.Scheduled + c.Running }

func (c counts) ended() int64 { return c.Completed + c.Failed + c.Other }

func (d *Demo) count(ctx context.Context) (c counts, err error) {
	err = d.queryRow(ctx, "count executions", sql.Counts, args{d.before},
		&c.Requested, &c.Waiting, &c.Scheduled, &c.Running, &c.Completed, &c.Failed, &c.Other, &c.Repeated, &c.Outbox)
	return c, err
}

// watch prints a line a second until the context ends.
func (d *Demo) watch(ctx context.Context, news <-chan string) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var before counts
	d.printf("%5s %10s %8s %8s %8s %10s %7s %7s", "time", "requested", "waiting", "sent", "running", "completed",
		"failed", "done/s")
	for {
		select {
		case <-ctx.Done():
			return
		case text := <-news:
			d.printf("%4.0fs  %s", time.Since(d.begun).Seconds(), text)
		case <-ticker.C:
			now, err := d.count(ctx)
			if err != nil {
				if ctx.Err() == nil {
					d.printf("%4.0fs  the database does not answer: %v", time.Since(d.begun).Seconds(), err)
				}
				continue
			}
			d.printf("%4.0fs %10d %8d %8d %8d %10d %7d %7d", time.Since(d.begun).Seconds(), now.live()+now.ended(),
				now.Waiting, now.Scheduled, now.Running, now.Completed, now.Failed, now.ended()-before.ended())
			before = now
			d.waiting.Store(now.Waiting)
		}
	}
}

// summary prints the result. It returns ErrLost after a broken promise.
func (d *Demo) summary(ctx context.Context, c counts, violations []doctor.Violation, queues queues) error {
	total := c.live() + c.ended()
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("SUMMARY")
	add("  requested             %8d executions in %s%s", total, whole(d.trafficEnd.Sub(d.begun)), d.lengthText())
	add("    %-33s %6d", "by the demo", len(d.requested))
	add("    %-33s %6d", "by rules, workflows, retries", total-int64(len(d.requested)))
	add("  completed             %8d", c.Completed)
	ends, err := d.ends(ctx)
	if err != nil {
		return err
	}
	repaired := 0
	for _, e := range ends {
		repaired += e.repaired
	}
	add("  failed attempts       %8d (another attempt of each completed)", repaired)
	add("  not completed         %8d", c.Failed+c.Other-int64(repaired))
	for _, kind := range expectedEnds {
		add("    %-33s %6d", kind, ends[kind].n-ends[kind].repaired)
	}
	var missing []int64
	err = d.queryRow(ctx, "look up the requested executions", sql.Missing, args{d.requested}, &missing)
	if err != nil {
		return err
	}
	add("  retries           %8d (among the requested)", c.Repeated)
	add("  lost                  %8d (each of the %d requested by the demo was looked up)",
		c.live()+int64(len(missing)), len(d.requested))
	incidentLines, wrong, err := d.incidentReport(ctx)
	if err != nil {
		return err
	}
	lines = append(lines, incidentLines...)
	problems := append(d.problems(c, ends, missing), wrong...)
	seconds := func(s float64) time.Duration {
		return time.Duration(s * float64(time.Second)).Round(100 * time.Microsecond)
	}
	var p50, p99 float64
	if err := d.queryRow(ctx, "read latencies", sql.Latency, args{d.before}, &p50, &p99); err == nil {
		add("  requested → running   p50 %s, p99 %s (executions that did not wait for a limit)", seconds(p50),
			seconds(p99))
	}
	orders, err := d.countShop(ctx)
	if err != nil {
		return err
	}
	add("  orders                %8d events, %d of them without consequence", orders.Events, orders.Unmet)
	add("  workflows             %8d completed, %d failed or cancelled, %d without an end", orders.Completed,
		orders.Failed, orders.Live)
	add("  questions             %8d answered, %d open", orders.Answered, orders.Open)
	if len(violations) == 0 {
		add("  consistency           all %d checks pass", len(doctor.Checks()))
	}
	for _, v := range violations {
		add("  inconsistent          %s", v)
	}
	for _, p := range problems {
		add("  not as promised       %s", p)
	}
	if len(queues.left) == 0 {
		add("  queues                all %d of the broker are empty", queues.all)
	}
	for _, q := range queues.left {
		add("  queue not empty       %s", q)
	}
	next, err := d.next(ctx)
	if err != nil {
		return err
	}
	d.printf("%s", strings.Join(append(lines, next...), "\n"))
	if len(problems) > 0 || len(violations) > 0 || len(queues.left) > 0 || !orders.done() {
		return ErrLost
	}
	return nil
}

// whole rounds a duration to seconds.
func whole(d time.Duration) time.Duration { return d.Round(time.Second) }

// lengthText explains why the run took longer than the configured traffic.
func (d *Demo) lengthText() string {
	text := fmt.Sprintf("; the last execution ended %s later", whole(time.Since(d.trafficEnd)))
	if over := whole(d.trafficEnd.Sub(d.begun) - d.cfg.Duration); !d.watched() && over > 0 {
		text = fmt.Sprintf(", the last %s until every fault had happened", over) + text
	}
	return text
}

// underWayText names the executions that the end of the run waits for, and its timeout.
func (d *Demo) underWayText(ctx context.Context, n int64) string {
	text := fmt.Sprintf("%d under way", n)
	var names []string
	if err := d.store.Pool().QueryRow(ctx, sql.UnderWay).Scan(&names); err == nil && len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s; the demo gives up after %s without an end", text, drainTimeout)
}

// expectedEnds are the kinds of ends other than completed that the demo causes, as ends.sql names them.
var expectedEnds = []string{
	"on purpose", "refused by the bank", "cancelled by the operator", lostKind, "with a lost task of its workflow",
	"not begun by the annex", "failed by a bad release", "requested of a deleted action",
}

const lostKind = "lost with a killed worker"

// end is a kind of ends.
type end struct {
	kind     string
	n        int
	repaired int     // another attempt completed
	some     []int64 // some of the executions
	text     string  // the error of one of them
}

func (d *Demo) ends(ctx context.Context) (map[string]end, error) {
	list, err := query.Rows(ctx, d.store.Pool(), "read how executions ended", sql.Ends, args{d.before},
		func(e *end) []any { return []any{&e.kind, &e.n, &e.repaired, &e.some, &e.text} })
	ends := map[string]end{}
	for _, e := range list {
		ends[e.kind] = e
	}
	return ends, err
}

// problems returns the broken promises, apart from the invariants and the shop.
func (d *Demo) problems(c counts, ends map[string]end, missing []int64) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if n := c.live(); n > 0 {
		add("%d executions have not ended", n)
	}
	if len(missing) > 0 {
		add("%d requested executions have no row, such as %v", len(missing), missing[:min(len(missing), 5)])
	}
	for kind, e := range ends {
		if !slices.Contains(expectedEnds, kind) {
			add("%d executions ended unexpectedly, such as %v: %s", e.n, e.some, e.text)
		}
	}
	if e := ends[lostKind]; e.n > 0 && !d.workerKilled {
		add("%d executions were lost with a killed worker, and none was killed: %v", e.n, e.some)
	}
	if c.Completed < int64(d.cfg.AtLeast) {
		add("%d executions completed; at least %d have to", c.Completed, d.cfg.AtLeast)
	}
	for _, fault := range d.undone {
		add("this fault did not happen: %s", fault)
	}
	return problems
}
