package app

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

func (f *fakeSource) Family(ctx context.Context, id int64) (*monitor.Family, error) {
	err := f.answer(ctx, screen.FeedFamily)
	if f.family == nil {
		return &monitor.Family{Reading: f.overview.Reading, ID: id}, err
	}
	family := *f.family
	family.ID = id
	return &family, err
}

// sampleFamily has the relatives of execution 884301.
func sampleFamily(reading monitor.Reading) *monitor.Family {
	one := func(id int64, depth int, status, action string, parent *int64) monitor.Relative {
		return monitor.Relative{Depth: depth, Execution: monitor.Execution{
			ID: id, ActionRef: action, Status: status, Parent: parent, Created: frozen.Add(-28 * time.Minute),
			Updated: frozen.Add(-20 * time.Minute),
		}}
	}
	tree := []monitor.Relative{
		one(884050, 0, "running", "etl-nightly", nil), one(884051, 1, "completed", "etl.list", ptr(884050)),
		one(884101, 1, "running", "etl.fetch", ptr(884050)), one(884102, 2, "completed", "etl.part", ptr(884101)),
		one(884301, 1, "failed", "core.http_request", ptr(884050)),
	}
	tree[1].Task, tree[2].Task, tree[4].Task = "list", "split", "fetch"
	tree[4].Item = ptr(3)
	again := one(884309, 1, "running", "core.http_request", ptr(884050))
	again.RetryCount = 1
	return &monitor.Family{
		Reading: reading, ID: 884301,
		Tree: append(tree, again),
		Acts: []monitor.AuditEntry{
			{
				ID: 312, At: frozen.Add(-time.Minute), Actor: "bob@desk", Action: "execution.cancel",
				Target: "execution 884309", Outcome: "failed", Reason: "wrong host",
			},
			{
				ID: 311, At: frozen.Add(-2 * time.Minute), Actor: "ada@here", Action: "dead_letter.requeue",
				Target: "dead letter 71", Outcome: "done",
			},
		},
		Attempts: []monitor.Attempt{
			{
				ID: 884301, Number: 1, Status: "failed", RepeatedBy: ptr(884309),
				Created: frozen.Add(-28 * time.Minute),
				Error:   "Worker queue TTL expired",
			},
			{
				ID: 884309, Number: 2, Status: "running", Repeats: ptr(884301), Reason: "worker_unavailable",
				Created: frozen.Add(-20 * time.Minute),
			},
		},
		DeadLetters: []monitor.LedgerEntry{{
			ID: 71, At: frozen.Add(-22 * time.Minute), What: "dispatch", Queue: "worker.7.executions",
			Reason: "expired", Decision: "failed",
			StatusThen: "scheduled", Detail: "nobody took it for 5m", Execution: ptr(884301),
		}},
		Enforcement: &monitor.Enforcement{
			ID: 55120, RuleRef: "nightly.start", TriggerRef: "core.timer", Event: 9007,
			Status: "processed", Execution: 884301,
		},
	}
}
