package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
)

// redriveLines say what a plan on the letters of the broker does.
func redriveLines(p *redrive.Plan) []act.Line {
	lines := goneLines(p)
	if p.Running != "" {
		lines = append(lines, line(act.Warn, "Another plan runs on this queue: %s. This one is refused until that ends.", p.Running))
	}
	switch p.Do {
	case redrive.DoRequeue:
		lines = append(lines, requeueLines(p)...)
	case redrive.DoPurge:
		if p.Real {
			lines = append(lines, line(act.Danger, "The broker deletes all that is ready, %d now, and also what arrives meanwhile. No copy is kept: there is no undo.", p.Bound))
			break
		}
		lines = append(lines, line(act.Plain, "%s lying there now are %sremoved; what comes later stays.", counted(p.Bound, "message", "messages"), copied(p)))
		if p.Bound > redrive.PurgeOffered {
			lines = append(lines, line(act.Warn, "That takes about %d s. The broker purges at once (esc, then yes): it also deletes what arrives meanwhile and gives no undo.",
				max(1, p.Bound/redrive.DrainRate)))
		}
	case redrive.DoMove:
		lines = append(lines, targetLine(p))
	case redrive.DoDiscard:
		lines = append(lines, line(act.Plain, "They are %sremoved; the others go back to their places.", copied(p)))
	case redrive.DoUndo:
		lines = append(lines, line(act.Plain, "They are published to %s again, with all that they had.", p.TargetKey))
		lines = append(lines, undoLines(p)...)
	}
	for _, check := range p.Checks {
		if !check.OK { // what is as it should be stands in the line of the target
			lines = append(lines, line(act.Warn, "▲ %s", check.Text))
		}
	}
	lines = append(lines, line(act.Plain, "bound    %d in the queue now, %s", p.Bound, counted(p.Queue.Consumers, "consumer", "consumers")))
	if p.Do == redrive.DoRequeue || p.Do == redrive.DoMove || p.Do == redrive.DoDiscard {
		lines = append(lines, line(act.Plain, "rate     %.0f/s, stop after 3 errors; est. %.0f s", p.Rate, float64(p.Work())/p.Rate))
	}
	if p.Ledger {
		kept := "the ledger has each of them, as " + map[string]string{redrive.DoDiscard: "discarded", redrive.DoPurge: "purged"}[p.Do] + ", before it leaves"
		if !p.Spool {
			kept += "; the spool is off, so they come back to the queue from there only"
		}
		lines = append(lines, line(act.Plain, "ledger   %s", kept))
	}
	return append(lines, safetyLines(p)...)
}

// copied says in passing that what is removed is copied first, where it is.
func copied(p *redrive.Plan) string {
	if p.Spool {
		return "copied and "
	}
	return ""
}

// goneLines say before all else that nothing brings back what a plan removes. A purge
// by the broker says so by itself.
func goneLines(p *redrive.Plan) []act.Line {
	switch {
	case p.Real || !p.Gone():
		return nil
	case p.Do == redrive.DoMove:
		return []act.Line{line(act.Danger, "The spool is off: no copy is kept, and nothing takes this back.")}
	default:
		return []act.Line{line(act.Danger, "The spool is off and there is no ledger: no copy is kept, nothing can be put back.")}
	}
}

// safetyLines say what cannot go wrong, and what can.
func safetyLines(p *redrive.Plan) []act.Line {
	switch {
	case p.Gone():
		return nil
	case p.Sealed:
		return []act.Line{line(act.Note, "safety   copied, sealed, before anything, confirmed before it leaves; duplicates are possible, losses are not")}
	case p.Spool || p.Do == redrive.DoUndo:
		return []act.Line{line(act.Note, "safety   copied before anything, confirmed before it leaves; duplicates are possible, losses are not")}
	default:
		return []act.Line{line(act.Note, "safety   confirmed before it leaves; duplicates are possible, losses are not")}
	}
}

func orDefault(exchange string) string {
	if exchange == "" {
		return "the queue itself"
	}
	return exchange
}

// requeueLines counts what would be done and what is left alone, with reasons.
func requeueLines(p *redrive.Plan) []act.Line {
	does := map[string]int{}
	skips := map[string][]string{}
	var overridden []string
	for _, item := range p.Items {
		if item.Skip == "" {
			does[item.Verdict.Do]++
			if item.Verdict.Do == redrive.Blocked {
				overridden = append(overridden, item.Verdict.Why)
			}
			continue
		}
		skips[item.Verdict.Do] = append(skips[item.Verdict.Do], item.Verdict.Why)
	}
	var lines []act.Line
	for _, each := range []struct{ do, text string }{
		{redrive.Requeue, "rows failed → requested, then a fresh request"},
		{redrive.Publish, "requested already; only their request is sent"},
		{redrive.Replay, "messages go to where they had been sent"},
		{redrive.Blocked, "requeued all the same, as you say why"},
	} {
		if n := does[each.do]; n > 0 {
			lines = append(lines, line(act.Plain, "%5d  %s: %s", n, each.do, each.text))
		}
	}
	if len(overridden) > 0 {
		lines = append(lines, line(act.Warn, "       ▲ %s", few(overridden)))
	}
	for _, do := range []string{redrive.Stale, redrive.Blocked, redrive.Export, redrive.Engine, redrive.Replay, redrive.Unknown} {
		if why := skips[do]; len(why) > 0 {
			lines = append(lines, line(act.Note, "%5d  skipped, %s: %s", len(why), do, few(why)))
		}
	}
	lines = append(lines, againLines(p)...)
	if p.Target != "" {
		lines = append(lines, targetLine(p), orderLine(p))
	}
	return append(lines, blastLines(p)...)
}

// few are the first of some reasons, each once.
func few(why []string) string {
	slices.Sort(why)
	why = slices.Compact(why)
	return strings.Join(why[:min(len(why), 3)], "; ")
}

// targetLine says where it goes, and what is there. An unknown route is said to be.
func targetLine(p *redrive.Plan) act.Line {
	text := fmt.Sprintf("to       %s  key %s", orDefault(p.Target), p.TargetKey)
	if p.Target == "" {
		text = "to       the queue " + p.TargetKey
	}
	if p.Route == nil {
		return line(act.Warn, "%s  which queues have it is unknown", text)
	}
	n := len(p.Route.Queues)
	tone := act.Plain
	if n == 0 || p.Route.Consumers == 0 {
		tone = act.Warn
	}
	return line(tone, "%s  %s, %s", text, counted(n, "queue", "queues"), counted(p.Route.Consumers, "consumer", "consumers"))
}

// orderLine says in which order they go, and who is before them.
func orderLine(p *redrive.Plan) act.Line {
	ahead := "how many are ahead is unknown"
	if p.Route != nil {
		ahead = fmt.Sprintf("%d ahead", p.Route.Ahead)
	}
	return line(act.Plain, "order    as first enqueued (FIFO kept); rejoin at the tail: %s", ahead)
}

// blastLines say what a requeue touches beyond the letters: rows, actions and with them
// slots, workflows, and the tries that are left.
func blastLines(p *redrive.Plan) []act.Line {
	actions, workflows := map[string]bool{}, map[int64]bool{}
	rows, least := 0, int64(-1)
	for i := range p.Items {
		item := &p.Items[i]
		if item.Skip != "" || item.Row == nil || item.Verdict.Do == redrive.Replay {
			continue
		}
		rows++
		actions[item.Row.ActionRef] = true
		if item.Row.Parent != nil {
			workflows[*item.Row.Parent] = true
		}
		if most := item.Row.MaxTries; most != nil && *most > 0 {
			if left := max(0, *most-item.Row.Tries); least < 0 || left < least {
				least = left
			}
		}
	}
	if rows == 0 {
		return nil
	}
	text := fmt.Sprintf("touches  %s and as many slots, of %s", counted(rows, "row", "rows"), counted(len(actions), "action", "actions"))
	if len(workflows) > 0 {
		text += ", " + counted(len(workflows), "workflow", "workflows")
	}
	lines := []act.Line{line(act.Plain, "%s", text)}
	if least >= 0 {
		lines = append(lines, line(act.Plain, "tries    at least %d left to each that counts them", least))
	}
	return lines
}

// againLines warn of what was sent again before and died again.
func againLines(p *redrive.Plan) []act.Line {
	n, most := 0, int64(0)
	for _, item := range p.Items {
		if item.Skip == "" && item.Letter != nil && item.Letter.Requeues > 0 {
			n, most = n+1, max(most, item.Letter.Requeues)
		}
	}
	if n == 0 {
		return nil
	}
	return []act.Line{line(act.Warn, "%5d  sent again before and dead again: up to the %s time now", n, act.Ordinal(most+1))}
}

// undoLines warn of what an undo does not take back, and of what it may do twice.
func undoLines(p *redrive.Plan) []act.Line {
	var lines []act.Line
	if p.Undoes == redrive.DoMove {
		lines = append(lines, line(act.Warn, "They were moved: what the target got stays there, so each may be handled twice. Remove it there first."))
	}
	if p.Queue.Consumers > 0 {
		lines = append(lines, line(act.Warn, "A handler takes from there and decides them as soon as they are back."))
	}
	if p.Unsure > 0 {
		lines = append(lines, line(act.Warn, "Of %d nobody knows whether they left or are back already, since a run was killed: S shows it. They may be there twice.", p.Unsure))
	}
	return lines
}
