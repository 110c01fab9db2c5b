package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

// practice is one incident to practise.
type practice struct {
	steps func(*incident) []step
	// assess compares the state with the right decisions. Irreversible mistakes are wrong; open tasks are
	// undone.
	assess func(context.Context, *incident, *verdict) error
	// end ends the cause if the user did not.
	end func(context.Context, *incident) error
}

// verdict judges the user's decisions.
type verdict struct{ right, wrong, undone, lost []string }

// practices are the incidents by name; docs/incidents.md has a section for each.
var practices = map[string]practice{
	"deaf-worker": {
		steps: func(i *incident) []step {
			return []step{{"incident: a worker consumes nothing", i.openAnnex}, {"", i.requestPrints}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			kept := false
			err := i.demo.queryRow(ctx, "read "+annexName, "SELECT cordoned OR draining FROM worker WHERE id = $1",
				args{i.annex.id}, &kept)
			if err != nil {
				return err
			}
			v.put(kept, annexName+" is given no work", annexName+" may still be given work: cordon or drain it")
			return i.ran(ctx, v, "ops.print", i.prints)
		},
	},
	"copied-messages": {
		steps: func(i *incident) []step {
			return []step{
				{"incident: a worker consumes nothing", i.openAnnex},
				{"", i.requestPrints},
				{"", i.requestFaxes},
				{"incident: a script copies its messages to another worker", i.copyMessages},
			}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			err := i.deadLetterVerdict(ctx, v, map[string]string{groupPrint: "requeued", groupFax: "discarded"})
			return errors.Join(err, i.ran(ctx, v, "ops.print", i.prints), i.ran(ctx, v, "ops.fax", i.faxes))
		},
	},
	"broken-messages": {
		steps: func(i *incident) []step {
			return []step{{"incident: a publisher sends broken messages", i.sendBroken}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			return i.deadLetterVerdict(ctx, v, map[string]string{groupBroken: "discarded"})
		},
	},
	"consumer-away": {
		steps: func(i *incident) []step {
			return []step{
				{"incident: the mirror of events is away", i.closeMirror},
				{"", i.scanParcels},
				{"incident: the mirror of events is back", i.openMirror},
			}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			if err := i.deadLetterVerdict(ctx, v, map[string]string{groupMirror: "requeued"}); err != nil {
				return err
			}
			all, missed, err := i.mirrored(ctx)
			v.put(missed == 0, fmt.Sprintf("the mirror has all %d events", all),
				fmt.Sprintf("the mirror lacks %d events", missed))
			return err
		},
	},
	"bad-release": {
		steps: func(i *incident) []step {
			return []step{
				{"incident: ops 1.5.0 is released", i.release},
				{"", i.requestInvoices},
				{"incident: ops 1.4.0 is back", i.rollBack},
			}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			return i.ran(ctx, v, "ops.invoice", i.invoices)
		},
	},
	"forgotten-pause": {
		steps: func(i *incident) []step {
			return []step{{
				"incident: ops.invoice is paused",
				i.override(triage.Override{Act: triage.Pause, Target: invoiceQueue}),
			}, {"", i.requestInvoices}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			paused, _, err := i.overrides(ctx, invoiceQueue.Action)
			v.put(!paused, "ops.invoice is not paused", "ops.invoice is still paused: resume it")
			return errors.Join(err, i.ran(ctx, v, "ops.invoice", i.invoices))
		},
		end: func(ctx context.Context, i *incident) error {
			return i.override(triage.Override{Act: triage.Resume, Target: invoiceQueue})(ctx)
		},
	},
	"lowered-limit": {
		steps: func(i *incident) []step {
			return []step{{
				"incident: the limit of demo.report is one",
				i.override(triage.Override{Act: triage.Limit, Limit: 1, Target: reports}),
			}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			_, limit, err := i.overrides(ctx, reports.Action)
			v.put(limit != 1, "demo.report has another limit than one",
				"demo.report may still run one at a time: reset its limit")
			return err
		},
		end: func(ctx context.Context, i *incident) error {
			return i.override(triage.Override{Act: triage.Reset, Target: reports})(ctx)
		},
	},
	"stuck-slot": {
		steps: func(i *incident) []step {
			return []step{{"incident: a backup hangs, with a limit of one", i.requestBackups}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			list, err := i.lastOf(ctx, i.hangs)
			for _, l := range list {
				v.put(l.status == "cancelled", "the backup that hung was cancelled", "a backup hangs: cancel it")
			}
			return errors.Join(err, i.ran(ctx, v, "ops.backup", i.backups))
		},
		end: func(ctx context.Context, i *incident) error { return i.demo.cancel(ctx, i.hangs, "the demo ends") },
	},
	"flood": {
		steps: func(i *incident) []step {
			return []step{{"incident: a script requests 300 backups of a test host", i.requestFlood}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			counts, err := i.countEnds(ctx, i.hangs)
			for _, status := range slices.Sorted(maps.Keys(counts)) {
				text := fmt.Sprintf("%d backups of the test host: %s", counts[status], status)
				v.put(status == "cancelled" || status == "completed", text, text+": cancel them")
			}
			return errors.Join(err, i.ran(ctx, v, "ops.backup of db1", i.backups))
		},
		end: func(ctx context.Context, i *incident) error { return i.demo.cancel(ctx, i.hangs, "the demo ends") },
	},
	"paused-workflows": {
		steps: func(i *incident) []step {
			return []step{{"incident: the orders under way are paused", i.pauseOrders}}
		},
		assess: func(ctx context.Context, i *incident, v *verdict) error {
			left, err := i.demo.underWay(ctx, true)
			v.put(len(left) == 0, "no order is paused",
				fmt.Sprintf("%d orders are still paused: resume them", len(left)))
			return errors.Join(err, i.ran(ctx, v, "shop.fulfil", i.orders))
		},
		end: func(ctx context.Context, i *incident) error { return i.demo.resumeOrders(ctx) },
	},
}

// Practices returns the names of the incidents to practise.
func Practices() []string { return slices.Sorted(maps.Keys(practices)) }

func (v *verdict) put(done bool, right, undone string) {
	if done {
		v.right = append(v.right, right)
	} else {
		v.undone = append(v.undone, undone)
	}
}

// countEnds counts executions by the status of their last attempt.
func (i *incident) countEnds(ctx context.Context, executions []int64) (map[string]int, error) {
	list, err := i.lastOf(ctx, executions)
	counts := map[string]int{}
	for _, l := range list {
		counts[l.status]++
	}
	return counts, err
}

// ran judges executions that must complete.
func (i *incident) ran(ctx context.Context, v *verdict, name string, executions []int64) error {
	counts, err := i.countEnds(ctx, executions)
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		text := fmt.Sprintf("%d executions of %s: %s", counts[status], name, status)
		switch status {
		case "completed":
			v.right = append(v.right, text)
		case "cancelled":
			v.wrong = append(v.wrong, text)
		case "missing":
			v.lost = append(v.lost, text)
		default:
			v.undone = append(v.undone, text)
		}
	}
	return err
}

// deadLetterVerdict compares the decisions on the dead letters of the groups with the right ones.
func (i *incident) deadLetterVerdict(ctx context.Context, v *verdict, want map[string]string) error {
	list, err := i.deadLetters(ctx)
	if err != nil {
		return err
	}
	counts := map[[2]string]int{}
	for _, l := range list {
		if want[l.group] != "" {
			counts[[2]string{l.group, l.decision}]++
		}
	}
	for _, group := range groups {
		for _, decision := range []string{"", "requeued", "sent", "discarded"} {
			n := counts[[2]string{group, decision}]
			text := fmt.Sprintf("%d dead letters %s (%s)", n, decision, groupName[group])
			switch {
			case n == 0:
			case decision == "":
				v.undone = append(v.undone, fmt.Sprintf("%d dead letters wait: %s", n, groupText[group]))
			case decision == want[group]:
				v.right = append(v.right, text)
			default:
				v.wrong = append(v.wrong, text)
			}
		}
	}
	return nil
}

// invoiceQueue is the target of the forgotten pause.
var invoiceQueue = triage.Target{Action: "ops.invoice"}

// override returns a function that applies an override as another operator.
func (i *incident) override(order triage.Override) func(context.Context) error {
	order.Reason = "maintenance"
	return i.demo.apply("night shift", order)
}

// overrides reads whether a queue of the action is paused, and the operator's limit, 0 for none.
func (i *incident) overrides(ctx context.Context, action string) (paused bool, limit int, err error) {
	err = i.demo.queryRow(ctx, "read the queue of "+action, sql.Overrides, args{action}, &paused, &limit)
	return paused, limit, err
}

// requestBackups requests one backup that hangs, and ten that wait for its slot.
func (i *incident) requestBackups(ctx context.Context) (err error) {
	if i.hangs, err = i.submit(ctx,
		[]submit.Request{{ActionRef: "ops.backup", Params: []byte(`{"seconds": 3600}`)}}); err != nil {
		return err
	}
	i.backups, err = i.submit(ctx, slices.Repeat([]submit.Request{{ActionRef: "ops.backup"}}, 10))
	return err
}

// requestFlood requests 300 backups of a test host, and five of another host behind them.
func (i *incident) requestFlood(ctx context.Context) (err error) {
	if i.hangs, err = i.submit(ctx,
		slices.Repeat([]submit.Request{{ActionRef: "ops.backup", Params: []byte(`{"seconds": 20, "host": "test"}`)}},
			300)); err != nil {
		return err
	}
	i.backups, err = i.submit(ctx,
		slices.Repeat([]submit.Request{{ActionRef: "ops.backup", Params: []byte(`{"host": "db1"}`)}}, 5))
	return err
}

// pauseOrders pauses the orders that are under way.
func (i *incident) pauseOrders(ctx context.Context) (err error) {
	if err := i.demo.pauseOrders(ctx); err != nil {
		return err
	}
	i.orders, err = i.demo.underWay(ctx, true)
	return err
}

// practise runs one incident and waits for the user until the demo ends.
func (d *Demo) practise(ctx context.Context, news chan<- string) {
	i := d.newIncident()
	i.left = &verdict{}
	one := practices[d.cfg.Practice]
	i.run(ctx, news, append([]step{{"", i.prepare}}, one.steps(i)...))
	if len(i.failures) == 0 {
		notify(ctx, news, "incident: "+d.cfg.Practice+" has begun; see docs/incidents.md")
		<-ctx.Done()
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), incidentTimeout)
	defer cancel()
	var err error
	if len(i.failures) == 0 {
		err = one.assess(after, i, i.left)
	}
	if one.end != nil {
		err = errors.Join(err, one.end(after, i))
	}
	i.cleanUp(after)
	if err != nil {
		i.failures = append(i.failures, err.Error())
	}
}

// lines formats the verdict for the report.
func (v *verdict) lines(name string, failures []string) []string {
	lines := []string{"  practice              " + name}
	for _, part := range []struct {
		name string
		list []string
	}{{"right", v.right}, {"wrong", v.wrong}, {"undone", v.undone}, {"lost", v.lost}, {"not brought about", failures}} {
		for _, text := range part.list {
			lines = append(lines, fmt.Sprintf("    %-19s %s", part.name, text))
		}
	}
	return lines
}
