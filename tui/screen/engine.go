package screen

import (
	"slices"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// EngineLine is one line about the replicas of the engine: how many are well and
// the loop that has been silent the longest for what it may, or the first thing
// that is wrong. It is empty where the schema has no replicas.
func (e *Env) EngineLine(w int) string {
	all := e.replicas()
	if all == nil {
		return ""
	}
	head := e.Head(FeedOverview, "ENGINE") + "  "
	if all.Total == 0 {
		return head + e.Paint(theme.Bad, e.Theme.Glyphs.Critical+" no replica runs")
	}
	count := e.Num(all.Well) + "/" + e.Num(all.Total) + e.Mark(FeedOverview)
	if worst := worstFirst(all.List)[0]; worst.Problem() != "" {
		text := e.Theme.Glyphs.Critical + " " + worst.Short() + " " + worst.Problem()
		return head + e.Paint(theme.Bad, count+"  "+widget.Cut(widget.Clean(text), max(0, w-12-widget.Width(count))))
	}
	role := theme.Good
	if e.Mark(FeedOverview) != "" {
		role = theme.Dim // it was well when it was read
	}
	return head + e.Paint(role, e.Theme.Glyphs.OK) + " " + count + " replicas  " + e.oldestTick(all)
}

// oldestTick is the tick that uses up most of what its loop may be silent.
func (e *Env) oldestTick(all *monitor.Replicas) string {
	name, oldest := "", time.Duration(0)
	share := -1.0
	for _, r := range all.List {
		loop, silence := r.OldestTick()
		if loop == "" {
			continue
		}
		if of := float64(silence) / float64(max(r.Details.Loops[loop].Patience, 1)); of > share {
			share, name, oldest = of, loop, silence
		}
	}
	if name == "" {
		return "seen " + widget.Age(all.Oldest()) + " ago"
	}
	return "oldest tick " + widget.Age(oldest+e.Since(all.At)) + " (" + widget.Clean(name) + ")"
}

// ReplicaLines is the list of replicas, the unwell first and the gone last, with a title: at most
// h lines, none if less than one replica finds room.
func (e *Env) ReplicaLines(w, h int) []string {
	all := e.replicas()
	if all == nil || h < 3 && all.Total > 0 || h < 1 {
		return nil
	}
	lines := []string{e.EngineLine(w)}
	if all.Total == 0 {
		return append(lines, widget.Cut("Start one with: attune-executor serve", w))[:min(h, 2)]
	}
	const fixed = 2 + 9 + 13 + 6 + 7 + 7
	host := max(6, w-fixed)
	lines = append(lines, e.Paint(theme.Dim, "  "+widget.Left("REPLICA", 9)+widget.Left("HOST", host)+
		widget.Left("BROKER", 13)+widget.Right("SEEN", 6)+widget.Right("TICK", 7)+widget.Right("FLIGHT", 7)))
	for _, r := range worstFirst(all.List) {
		if len(lines) == h {
			break
		}
		state := "active"
		if r.Problem() != "" {
			state = "failed"
		}
		look := e.Theme.Of(state)
		broker := r.State
		if !r.Alive() {
			broker = widget.Unknown // its last report says nothing about now
		}
		tick := widget.Unknown
		if loop, silence := r.OldestTick(); loop != "" {
			tick = widget.Age(silence + e.Since(all.At))
		}
		lines = append(lines, e.Paint(look.Role, look.Glyph)+" "+widget.Left(widget.Clean(r.Short()), 9)+
			widget.Left(widget.CutMiddle(widget.Clean(r.Host), host-1),
				host)+widget.Left(widget.Cut(widget.Clean(broker), 12), 13)+
			widget.Right(widget.Age(r.Age+e.Since(all.At)), 6)+widget.Right(tick,
			7)+widget.Right(e.Num(int64(r.InFlight)), 7))
	}
	return lines
}

func (e *Env) replicas() *monitor.Replicas {
	if e.Data.Overview == nil {
		return nil
	}
	return e.Data.Overview.Replicas
}

// deadAfter is the silence from which a replica is taken for gone, not for ill.
const deadAfter = 10 * time.Minute

// worstFirst puts the replicas that are unwell first and those that are gone last:
// what ended long ago hides nothing that needs help now.
func worstFirst(list []monitor.Replica) []monitor.Replica {
	sorted := slices.Clone(list)
	weight := func(r monitor.Replica) int {
		if r.Age > deadAfter {
			return -1
		}
		return len(r.Problems)
	}
	slices.SortStableFunc(sorted, func(a, b monitor.Replica) int { return weight(b) - weight(a) })
	return sorted
}
