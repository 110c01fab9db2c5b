package screen

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// EngineLine sums up the replicas of the engine: how many are well, and the first problem, or else the
// loop that is nearest to its timeout. It is empty if the schema has no replicas.
func (e *Env) EngineLine(w int) string {
	all := e.replicas()
	if all == nil {
		return ""
	}
	head := e.Head(FeedOverview, "ENGINE") + "  "
	if all.ReadOnly != nil {
		text := e.Theme.Glyphs.Critical + " " + widget.Clean(all.ReadOnly.String())
		return head + e.Paint(theme.Bad, widget.Cut(text, max(0, w-12)))
	}
	if all.Total == 0 {
		return head + e.Paint(theme.Bad, e.Theme.Glyphs.Critical+" no replica runs")
	}
	mark := e.Mark(FeedOverview)
	count := e.Num(all.Well) + "/" + e.Num(all.Total) + mark
	if worst := worstFirst(all.List)[0]; worst.Problem() != "" {
		text := e.Theme.Glyphs.Critical + " " + worst.Short() + " " + worst.Problem()
		return head + e.Paint(theme.Bad, count+"  "+widget.Cut(widget.Clean(text), max(0, w-12-widget.Width(count))))
	}
	role, sign := theme.Good, e.Theme.Glyphs.OK
	switch {
	case all.Well < all.Total: // the others are dead for long
		role, sign = theme.Warn, e.Theme.Glyphs.Warning
	case mark != "":
		role = theme.Dim // the reading is old
	}
	return head + e.Paint(role, sign) + " " + count + " replicas  " + e.oldestTick(all)
}

// oldestTick is the tick that uses the largest share of its loop's timeout, with that timeout: a loop that ticks each
// hour is well after 50 minutes.
func (e *Env) oldestTick(all *monitor.Replicas) string {
	name, oldest, allowed, share := "", time.Duration(0), time.Duration(0), -1.0
	for _, r := range all.List {
		loop, silence := r.OldestTick()
		if loop == "" || r.Age > deadAfter {
			continue
		}
		timeout := max(r.Details.Loops[loop].Timeout, 1)
		if of := float64(silence) / float64(timeout); of > share {
			share, name, oldest, allowed = of, loop, silence, timeout
		}
	}
	if name == "" {
		return "seen " + widget.Age(all.Oldest()) + " ago"
	}
	return "oldest tick " + widget.Age(oldest+e.Since(all.At)) + " of " + widget.Age(allowed) + " (" +
		widget.Clean(name) + ")"
}

// Tick is the age of the tick that uses most of its loop's timeout, and that timeout; unknown if no loop is reported.
func (e *Env) Tick(r *monitor.Replica, at time.Time) string {
	loop, silence := r.OldestTick()
	if loop == "" {
		return widget.Unknown
	}
	return widget.Short(silence+e.Since(at)) + "/" + widget.Age(r.Details.Loops[loop].Timeout)
}

// ReplicaLines lists the replicas, those with problems first and dead ones last, below a title: at most
// h lines, none if no replica fits.
func (e *Env) ReplicaLines(w, h int) []string {
	all := e.replicas()
	if all == nil || h < 3 && all.Total > 0 || h < 1 {
		return nil
	}
	lines := []string{e.EngineLine(w)}
	if all.Total == 0 && all.ReadOnly == nil {
		return append(lines, widget.Cut("Start one with: attune-executor serve", w))[:min(h, 2)]
	}
	host := max(6, w-2-9-13-6-10-7) // the rest of the line
	cells := func(name, at, broker, seen, tick, inFlight string) string {
		return widget.Left(name, 9) + widget.Left(widget.CutMiddle(at, host-1), host) +
			widget.Left(widget.Cut(broker, 12), 13) + widget.Right(seen, 6) + widget.Right(tick, 10) +
			widget.Right(inFlight, 7)
	}
	lines = append(lines, e.Dim("  "+cells("REPLICA", "HOST", "BROKER", "SEEN", "TICK", "FLIGHT")))
	for _, r := range worstFirst(all.List) {
		if len(lines) == h {
			break
		}
		state, broker := "active", r.State
		if r.Problem() != "" {
			state = "failed"
		}
		if !r.Alive() {
			broker = widget.Unknown // its last report is out of date
		}
		lines = append(lines, e.Look(e.Theme.Of(state), "")+" "+cells(widget.Clean(r.Short()), widget.Clean(r.Host),
			widget.Clean(broker), widget.Age(r.Age+e.Since(all.At)), e.Tick(&r, all.At), e.Num(int64(r.InFlight))))
	}
	return lines
}

func (e *Env) replicas() *monitor.Replicas {
	if e.Data.Overview == nil {
		return nil
	}
	return e.Data.Overview.Replicas
}

// deadAfter is the silence after which a replica counts as dead.
const deadAfter = 10 * time.Minute

// worstFirst sorts replicas by their problems. Dead ones come last: they need no help now.
func worstFirst(list []monitor.Replica) []monitor.Replica {
	weight := func(r monitor.Replica) int {
		if r.Age > deadAfter {
			return -1
		}
		return len(r.Problems)
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b monitor.Replica) int { return cmp.Compare(weight(b), weight(a)) })
	return sorted
}

// EngineReachesBroker reports whether a replica is connected to the broker.
func (e *Env) EngineReachesBroker() bool {
	all := e.replicas()
	if all == nil || e.Data.Fresh(FeedOverview).Err != nil {
		return false
	}
	return slices.ContainsFunc(all.List, func(r monitor.Replica) bool { return r.State == "connected" && !r.Late })
}

// BrokerWorks reports whether the broker is known to work although its management API cannot be read.
func (e *Env) BrokerWorks() bool {
	return e.EngineReachesBroker() || explain.Answered(e.Data.Fresh(FeedBroker).Err)
}
