package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/operator"
)

// sampleDesk answers as the desk of an installation without our tables does.
type sampleDesk struct {
	plan    redrive.Plan
	receipt redrive.Receipt
	spool   redrive.SpoolState
	refused error
}

func (d *sampleDesk) Queue() string { return monitor.DeadLetterQueue }
func (d *sampleDesk) Look(context.Context) (*redrive.Queue, error) {
	return &redrive.Queue{Type: "classic"}, nil
}
func (d *sampleDesk) Spool() ([]*redrive.Spooled, error) { return sampleSpool(), nil }
func (d *sampleDesk) SpoolState() redrive.SpoolState     { return d.spool }
func (d *sampleDesk) SetSpool(on bool)                   { d.spool.On = on }

func (d *sampleDesk) Snapshot(context.Context, bool) (*redrive.Snapshot, error) {
	return sampleSnapshot(), nil
}

func (d *sampleDesk) Plan(_ context.Context, order redrive.Order) (*redrive.Plan, error) {
	p := d.plan
	override := p.Override
	p.Order = order
	p.Override = override
	return &p, nil
}

func (d *sampleDesk) Run(_ context.Context, p *redrive.Plan, _ string, _ redrive.Tell) (*redrive.Receipt, error) {
	r := d.receipt
	r.Op, r.Do = p.Op, p.Do
	return &r, d.refused
}

// redriveStages bring a model to each dialog of acts on the letters of the broker.
var redriveStages = map[string]func(b *bundle, d *sampleDesk){
	"spool": func(b *bundle, d *sampleDesk) {
		d.spool = redrive.SpoolState{
			Folder: "/home/ann/.local/state/attune/spool", On: true, Sealed: true, Key: "/home/ann/.config/attune/keys/spool", KeyName: "0badcafe",
			Operations: 12, Bytes: 3 << 20, Oldest: frozen.Add(-72 * time.Hour),
		}
		b.enter("spool")
	},
	"spool_off": func(b *bundle, d *sampleDesk) {
		d.spool = redrive.SpoolState{Folder: "/home/ann/.local/state/attune/spool"}
		b.enter("spool off")
	},
	"purge_form": func(b *bundle, _ *sampleDesk) {
		snap := sampleSnapshot()
		snap.Queue.Ready = 61_204
		b.apply("snapshot", snap)
		b.press("P")
	},
	"purge_many": func(b *bundle, d *sampleDesk) {
		d.plan = redrive.Plan{Op: "01J9ZKAB", Bound: 61_204, Rate: 20, Spool: true, Queue: redrive.Queue{Ready: 61_204}}
		b.press("P", "enter")
	},
	"purge_real": func(b *bundle, d *sampleDesk) {
		d.plan = redrive.Plan{Op: "01J9ZKAB", Bound: 61_204, Rate: 20, Queue: redrive.Queue{Ready: 61_204}}
		b.press("P")
		b.typed("yes")
		b.press("enter")
	},
	"requeue": func(b *bundle, d *sampleDesk) {
		d.plan = samplePlan()
		b.press("R", "enter")
	},
	"requeue_rival": func(b *bundle, d *sampleDesk) {
		d.plan = samplePlan()
		d.plan.Running = "attune-tui bob@ops op 01J9ZKAA since 02:18:58Z"
		b.press("R", "enter")
	},
	"rival": func(b *bundle, _ *sampleDesk) {
		dead := *b.source.dead
		dead.Running = "attune-tui bob@ops op 01J9ZKAA since 02:18:58Z"
		b.apply("dlq", &dead)
	},
	"undo": func(b *bundle, d *sampleDesk) {
		d.plan = redrive.Plan{
			Op: "01J9ZKAC", Items: make([]redrive.Item, 3), Bound: 37, Undoes: redrive.DoMove, Unsure: 1, TargetKey: monitor.DeadLetterQueue,
			Queue: redrive.Queue{Ready: 37, Consumers: 1},
		}
		b.press("b", "u")
	},
	"requeue_unknown": func(b *bundle, d *sampleDesk) {
		d.plan = samplePlan()
		d.plan.Route = nil
		d.plan.Checks = []redrive.Check{{Warn: true, Text: "where the key leads is unknown: there is no management interface"}}
		b.press("R", "enter")
	},
	"running": func(b *bundle, d *sampleDesk) {
		d.plan = samplePlan()
		b.press("R", "enter")
		b.typed("override")
		b.press("tab", "tab")
		b.hold("enter")
		op := b.last()
		op.Progress.Set(18, 27)
		op.Progress.Count(act.Counts{Done: 18, Depths: "dlq 37 → 19   attune.execution.requests 612 → 630"})
		b.now = b.now.Add(900 * time.Millisecond)
		b.send(spinMsg{})
	},
	"receipt": func(b *bundle, d *sampleDesk) {
		d.plan = redrive.Plan{Op: "01J9ZKAB", Items: make([]redrive.Item, 27), Bound: 37, Rate: 20, Spool: true, Queue: redrive.Queue{Ready: 37}}
		d.receipt = redrive.Receipt{
			Planned: 27, Done: 18, Changed: 1, Unknown: 1, Left: 7, Before: 37, After: -1, Expected: 19, Stopped: "not connected to the message broker", Audit: 312,
			Undoable: true,
		}
		b.press("D", "y")
	},
	"again": func(b *bundle, _ *sampleDesk) {
		snap := sampleSnapshot()
		w := *snap.Letters[0].Whole
		w.Headers = broker.Table{
			"x-attune-requeue-count": int64(2), "x-attune-requeue-op": "01J9ZKABCD", "x-attune-requeue-by": "ann@desk", "x-attune-requeue-at": "2026-11-21T01:40:00Z",
		}
		snap.Letters[0] = redrive.Read(&w, 0)
		b.apply("snapshot", snap)
		b.press("enter")
	},
	"discard": func(b *bundle, d *sampleDesk) {
		d.plan = redrive.Plan{Op: "01J9ZKAB", Items: make([]redrive.Item, 3), Bound: 37, Rate: 20, Spool: true, Sealed: true, Queue: redrive.Queue{Ready: 37}}
		b.press("D")
	},
	"discard_off": func(b *bundle, d *sampleDesk) {
		d.plan = redrive.Plan{Op: "01J9ZKAB", Items: make([]redrive.Item, 3), Bound: 37, Rate: 20, Queue: redrive.Queue{Ready: 37}}
		b.press("D")
	},
}

// samplePlan is a requeue of many, of which some are skipped and one is overridden.
func samplePlan() redrive.Plan {
	p := redrive.Plan{
		Op: "01J9ZKAB", Bound: 37, Rate: 20, Spool: true, Target: "attune.executions", TargetKey: "execution.requested",
		Queue: redrive.Queue{Ready: 37}, Route: &redrive.Route{Queues: []string{"attune.execution.requests"}, Ahead: 612, Consumers: 1},
		Order: redrive.Order{Override: "the parent was begun anew"},
	}
	for i := range 30 {
		row := &redrive.Row{ID: int64(884301 + i), ActionRef: "core.http_request", Parent: ptr(884050), MaxTries: ptr(3), Tries: int64(i % 2)}
		item := redrive.Item{Letter: &redrive.Letter{Requeues: int64(i % 3)}, Row: row, Verdict: redrive.Verdict{Do: redrive.Requeue}}
		switch {
		case i < 2:
			item.Verdict = redrive.Verdict{Do: redrive.Stale, Why: fmt.Sprintf("execution %d has ended: completed", row.ID)}
			item.Skip = "stale"
		case i == 2:
			item.Verdict = redrive.Verdict{Do: redrive.Blocked, Why: "its parent, execution 884050, has ended: failed"}
		}
		p.Items = append(p.Items, item)
	}
	return p
}

func TestGoldenFramesOfActingOnTheBroker(t *testing.T) {
	t.Parallel()
	for name, bring := range redriveStages {
		for _, size := range [][2]int{{80, 24}, {60, 15}} {
			t.Run(fmt.Sprintf("%s_%dx%d", name, size[0], size[1]), func(t *testing.T) {
				t.Parallel()
				desk := &sampleDesk{}
				b := started(t, sample(), size[0], size[1], func(o *Options) { o.Acts = operator.New(operator.Config{Desk: desk}, nil, nil) })
				b.press("5", "S", "esc")
				bring(b, desk)
				requireFits(t, b, size[0], size[1])
				requireGolden(t, fmt.Sprintf("redrive_%s_%dx%d", name, size[0], size[1]), b.View())
			})
		}
	}
}

func TestTheSpoolIsTurnedOffByItsCommand(t *testing.T) {
	t.Parallel()
	acts := &letterActs{}
	b := onLetters(t, acts, 80, 24)
	b.enter("spool maybe")
	require.Contains(t, b.View(), `spool is on or off, not "maybe"`)
	b.press("esc")
	for _, wish := range []string{"", "off", "on"} {
		b.enter("spool " + wish)
		order := acts.orders[len(acts.orders)-1]
		require.Equal(t, act.KeepSpool, order.Kind)
		require.Equal(t, wish, order.Values[act.FieldSpool])
	}
	require.Equal(t, 3, acts.count(), "at once")
}
