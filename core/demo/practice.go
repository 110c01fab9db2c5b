package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

//go:embed overrides.sql
var overridesSQL string

// practice is one incident by itself, for people who want to practise it.
type practice struct {
	steps func(*incident) []step
	// judge says how the trainee has left it. Only what is over is wrong; what can still be
	// done is undone.
	judge func(context.Context, *incident, *verdict) error
	// end ends the cause for the trainee who did not.
	end func(context.Context, *incident) error
}

// verdict is how an incident was left.
type verdict struct{ right, wrong, undone, lost []string }

// practices are the incidents by name; docs/incidents.md has a section for each.
var practices = map[string]practice{
	"deaf-worker": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {"incident: a worker consumes nothing", i.openAnnex}, {"", i.requestPrints}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			kept := false
			err := i.demo.store.Pool().QueryRow(ctx, "SELECT cordoned OR draining FROM worker WHERE id = $1",
				i.annex.id).Scan(&kept)
			if err != nil {
				return fmt.Errorf("read %s: %w", annexName, err)
			}
			v.put(kept, annexName+" is given no work", annexName+" may still be given work: cordon or drain it")
			return i.ran(ctx, v, "ops.print", i.prints)
		},
	},
	"copied-messages": {
		steps: func(i *incident) []step {
			return []step{
				{"", i.prepare},
				{"incident: a worker consumes nothing", i.openAnnex},
				{"", i.requestPrints},
				{"", i.requestFaxes},
				{"incident: a script copies its messages to another worker", i.copyMessages},
			}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			err := i.letterVerdict(ctx, v, map[string]string{groupPrint: "requeued", groupFax: "discarded"})
			return errors.Join(err, i.ran(ctx, v, "ops.print", i.prints), i.ran(ctx, v, "ops.fax", i.faxes))
		},
	},
	"broken-messages": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {"incident: a publisher sends broken messages", i.sendBroken}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			return i.letterVerdict(ctx, v, map[string]string{groupBroken: "discarded"})
		},
	},
	"consumer-away": {
		steps: func(i *incident) []step {
			return []step{
				{"", i.prepare},
				{"incident: the mirror of events is away", i.closeMirror},
				{"", i.scanParcels},
				{"incident: the mirror of events is back", i.openMirror},
			}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			if err := i.letterVerdict(ctx, v, map[string]string{groupMirror: "requeued"}); err != nil {
				return err
			}
			all, missed, err := i.mirrored(ctx)
			v.put(missed == 0, fmt.Sprintf("the mirror has taken all %d events", all),
				fmt.Sprintf("the mirror did not take %d events", missed))
			return err
		},
	},
	"bad-release": {
		steps: func(i *incident) []step {
			return []step{
				{"", i.prepare},
				{"incident: ops 1.5.0 is released", i.release},
				{"", i.requestInvoices},
				{"incident: ops 1.4.0 is back", i.rollBack},
			}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			return i.ran(ctx, v, "ops.invoice", i.invoices)
		},
	},
	"forgotten-pause": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {"incident: ops.invoice is paused",
				i.say(triage.Override{Act: triage.Pause, Target: invoiceQueue})}, {"", i.requestInvoices}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			paused, _, err := i.overrides(ctx, invoiceQueue.Action)
			v.put(!paused, "ops.invoice is not paused", "ops.invoice is still paused: resume it")
			return errors.Join(err, i.ran(ctx, v, "ops.invoice", i.invoices))
		},
		end: func(ctx context.Context, i *incident) error {
			return i.say(triage.Override{Act: triage.Resume, Target: invoiceQueue})(ctx)
		},
	},
	"lowered-limit": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {
				"incident: the limit of demo.report is one",
				i.say(triage.Override{Act: triage.Limit, Limit: 1, Target: reports}),
			}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			_, limit, err := i.overrides(ctx, reports.Action)
			v.put(limit != 1, "demo.report has another limit than one",
				"demo.report may still run one at a time: reset its limit")
			return err
		},
		end: func(ctx context.Context, i *incident) error {
			return i.say(triage.Override{Act: triage.Reset, Target: reports})(ctx)
		},
	},
	"stuck-slot": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {"incident: a backup hangs, with a limit of one", i.requestBackups}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			list, err := i.lastOf(ctx, i.hangs)
			for _, l := range list {
				v.put(l.status == "cancelled", "the backup that hung was cancelled", "a backup hangs: cancel it")
			}
			return errors.Join(err, i.ran(ctx, v, "ops.backup", i.backups))
		},
		end: func(ctx context.Context, i *incident) error { return i.cancel(ctx, i.hangs) },
	},
	"flood": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {"incident: a script requests 300 backups of a test host", i.requestFlood}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			list, err := i.lastOf(ctx, i.hangs)
			counts := map[string]int{}
			for _, l := range list {
				counts[l.status]++
			}
			for _, status := range slices.Sorted(maps.Keys(counts)) {
				text := fmt.Sprintf("%d backups of the test host: %s", counts[status], status)
				switch status {
				case "cancelled", "completed":
					v.right = append(v.right, text)
				default:
					v.undone = append(v.undone, text+": cancel them")
				}
			}
			return errors.Join(err, i.ran(ctx, v, "ops.backup of db1", i.backups))
		},
		end: func(ctx context.Context, i *incident) error { return i.cancel(ctx, i.hangs) },
	},
	"paused-workflows": {
		steps: func(i *incident) []step {
			return []step{{"", i.prepare}, {"incident: the orders under way are paused", i.pauseOrders}}
		},
		judge: func(ctx context.Context, i *incident, v *verdict) error {
			left, err := i.demo.underWay(ctx, true)
			v.put(len(left) == 0, "no order is paused",
				fmt.Sprintf("%d orders are still paused: resume them", len(left)))
			return errors.Join(err, i.ran(ctx, v, "shop.fulfil", i.orders))
		},
		end: func(ctx context.Context, i *incident) error { return i.demo.resumeOrders(ctx) },
	},
}

// Practices are the names of the incidents that can be practised.
func Practices() []string { return slices.Sorted(maps.Keys(practices)) }

func (v *verdict) put(done bool, right, undone string) {
	if done {
		v.right = append(v.right, right)
	} else {
		v.undone = append(v.undone, undone)
	}
}

// ran judges executions that are to complete.
func (i *incident) ran(ctx context.Context, v *verdict, name string, executions []int64) error {
	list, err := i.lastOf(ctx, executions)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, l := range list {
		counts[l.status]++
	}
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
	return nil
}

// letterVerdict judges the dead letters of the groups by what was to be decided of them.
func (i *incident) letterVerdict(ctx context.Context, v *verdict, want map[string]string) error {
	letters, err := i.letters(ctx)
	if err != nil {
		return err
	}
	counts := map[[2]string]int{}
	for _, l := range letters {
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

// invoiceQueue is the queue that is paused.
var invoiceQueue = triage.Target{Action: "ops.invoice"}

// say acts upon a queue as another operator.
func (i *incident) say(order triage.Override) func(context.Context) error {
	order.Reason = "maintenance"
	return func(ctx context.Context) error {
		other := triage.New(triage.Config{Actor: "night shift", Source: "attune-demo"}, i.demo.store, i.demo.relay)
		_, err := other.Override(ctx, order)
		return err
	}
}

// overrides reads whether a queue of the action is paused, and the limit that an operator
// has set, 0 for none.
func (i *incident) overrides(ctx context.Context, action string) (paused bool, limit int, err error) {
	if err := i.demo.store.Pool().QueryRow(ctx, overridesSQL, action).Scan(&paused, &limit); err != nil {
		return false, 0, fmt.Errorf("read the queue of %s: %w", action, err)
	}
	return paused, limit, nil
}

// requestBackups asks for one backup that hangs and ten that wait for its slot.
func (i *incident) requestBackups(ctx context.Context) (err error) {
	if i.hangs, err = i.ask(ctx,
		[]submit.Request{{ActionRef: "ops.backup", Params: []byte(`{"seconds": 3600}`)}}); err != nil {
		return err
	}
	i.backups, err = i.ask(ctx, slices.Repeat([]submit.Request{{ActionRef: "ops.backup"}}, 10))
	return err
}

// requestFlood asks for 300 backups of a test host, and for five of another host behind them.
func (i *incident) requestFlood(ctx context.Context) (err error) {
	if i.hangs, err = i.ask(ctx,
		slices.Repeat([]submit.Request{{ActionRef: "ops.backup", Params: []byte(`{"seconds": 20, "host": "test"}`)}},
			300)); err != nil {
		return err
	}
	i.backups, err = i.ask(ctx,
		slices.Repeat([]submit.Request{{ActionRef: "ops.backup", Params: []byte(`{"host": "db1"}`)}}, 5))
	return err
}

// cancel cancels executions that the trainee has left.
func (i *incident) cancel(ctx context.Context, ids []int64) error {
	plan, err := i.demo.operator().PlanCancel(ctx, triage.CancelOrder{IDs: ids, Reason: "the demo ends"})
	if err != nil {
		return err
	}
	_, err = i.demo.operator().Cancel(ctx, plan)
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

// practise brings one incident about and waits for the trainee until the show is over.
func (d *Demo) practise(ctx context.Context, news chan<- string) {
	i := d.newIncident()
	i.left = &verdict{}
	one := practices[d.cfg.Practice]
	i.happen(ctx, news, one.steps(i))
	if len(i.failures) == 0 {
		tell(ctx, news, "incident: "+d.cfg.Practice+" is there; see docs/incidents.md")
		<-ctx.Done()
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), incidentTimeout)
	defer cancel()
	var err error
	if len(i.failures) == 0 {
		err = one.judge(after, i, i.left)
	}
	if one.end != nil {
		err = errors.Join(err, one.end(after, i))
	}
	i.heal(after)
	if err != nil {
		i.failures = append(i.failures, err.Error())
	}
}

// lines says how the incident was left.
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
