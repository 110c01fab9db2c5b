package triage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// Taker is another worker that could take unstarted executions.
type Taker struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	Room       int    `json:"room"`       // its free capacity
	Executions int64  `json:"executions"` // how many of the executions it could run
}

// WorkerPlan is what an action on a worker would do.
type WorkerPlan struct {
	WorkerRequest

	At  time.Time `json:"at"`
	Now WorkerNow `json:"now"`
	// Changes is false if the action changes nothing or is refused; Says is the effect, or the reason.
	Changes bool     `json:"changes"`
	Refused bool     `json:"refused"`
	Says    string   `json:"says"`
	Effects []string `json:"effects"` // sentences about the consequences
	// Takers are the other workers that could take its unstarted executions.
	Takers []Taker `json:"takers"`
	// Alone counts the unstarted executions that no other worker can take now.
	Alone int64 `json:"unstarted_without_taker"`
	// Last are the runtimes that no other live worker has.
	Last []string `json:"last_worker_for"`
}

// maxGroups bounds the groups of unstarted executions that a plan reads.
const maxGroups = 200

// PlanWorker reads what an action on a worker would do, without locks or writes.
func (t *Triage) PlanWorker(ctx context.Context, request WorkerRequest) (*WorkerPlan, error) {
	return Read(ctx, t, "plan an act on a worker", func(ctx context.Context, tx *store.Tx) (*WorkerPlan, error) {
		now, err := t.worker(ctx, tx, request, false)
		if err != nil {
			return nil, err
		}
		planned := &WorkerPlan{
			WorkerRequest: request, Now: *now, Effects: []string{}, Takers: []Taker{},
			Last: []string{},
		}
		if planned.At, err = tx.Now(ctx); err != nil {
			return nil, fmt.Errorf("read the clock: %w", err)
		}
		if request.Act == CordonWorker || request.Act == DrainWorker {
			if err := t.others(ctx, tx, planned); err != nil {
				return nil, err
			}
		}
		planned.foresee(t)
		return planned, nil
	})
}

// foresee sets the effect of the action.
func (p *WorkerPlan) foresee(t *Triage) {
	if p.Act == ForgetWorker {
		p.Says = "is forgotten: its row, its queues and the routes of its dead letters go"
		p.Changes = true
		if err := p.Now.forgettable(); err != nil {
			refused, _ := errors.AsType[*WorkerRefusedError](err)
			p.Changes, p.Refused, p.Says = false, true, "stays: "+refused.Reason+": "+refused.Advice
		}
		return
	}
	state, says := t.change(&p.Now, p.WorkerRequest)
	p.Changes, p.Says = state != nil, says
	if state != nil {
		p.effects()
	}
}

func (p *WorkerPlan) effects() {
	add := func(format string, args ...any) { p.Effects = append(p.Effects, fmt.Sprintf(format, args...)) }
	now := &p.Now
	if now.Running > 0 && p.Act != UncordonWorker {
		add("%s.", phrase.Plural(now.Running, "execution runs there and goes on to its end",
			"executions run there and go on to their ends"))
	}
	switch {
	case now.Unstarted == 0 || p.Act == UncordonWorker:
	case p.Act == CordonWorker:
		add("%s.", phrase.Plural(now.Unstarted, "waiting execution stays with it", "waiting executions stay with it"))
	case !now.Fences:
		add("%s: it does not refuse outdated dispatches, so nothing can be moved away safely.",
			phrase.Plural(now.Unstarted, "waiting execution stays with it", "waiting executions stay with it"))
	default:
		add("%s within seconds.",
			phrase.Plural(now.Unstarted, "waiting execution moves to another worker",
				"waiting executions move to other workers"))
		if p.Alone > 0 {
			add("No other worker can take %d of them now: they stay until one can, "+
				"or until executor.scheduled_timeout.", p.Alone)
		}
	}
	if len(p.Last) > 0 {
		add("It is the last worker that is given work for %s: what needs that waits or fails, "+
			"as executor.no_workers says.", joined(p.Last))
	}
	if now.Stale && now.Status != "inactive" {
		add("Its heartbeat is stale: what it has is taken away from it anyway.")
	}
}

func joined(list []string) string {
	last := len(list) - 1
	if last <= 0 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// others finds the takers of the worker's unstarted executions, and the runtimes that only it has.
func (t *Triage) others(ctx context.Context, tx *store.Tx, plan *WorkerPlan) error {
	rows, err := tx.ReadFleet(ctx)
	if err != nil {
		return fmt.Errorf("read the other workers: %w", err)
	}
	var self placement.Worker
	var rest []placement.Worker
	for _, r := range rows {
		w := placement.Row(r).Worker(t.cfg.HeartbeatStaleAfter)
		if r.ID == plan.Now.ID {
			self = w
		} else {
			rest = append(rest, w)
		}
	}
	for _, runtime := range self.Runtimes {
		if !slices.ContainsFunc(rest, func(w placement.Worker) bool {
			return w.Standing == placement.Live && slices.Contains(w.Runtimes, runtime)
		}) {
			plan.Last = append(plan.Last, runtime)
		}
	}
	if plan.Now.Unstarted == 0 {
		return nil
	}
	return t.takers(ctx, tx, plan, placement.NewFleet(rest, 0))
}

func (t *Triage) takers(ctx context.Context, tx *store.Tx, plan *WorkerPlan, fleet *placement.Fleet) error {
	groups, err := tx.GroupUnstarted(ctx, plan.Now.ID, maxGroups)
	if err != nil {
		return fmt.Errorf("read what worker %s has not begun: %w", plan.Now.Name, err)
	}
	actions := make([]int64, len(groups))
	for i, g := range groups {
		actions[i] = g.Action
	}
	rows, err := tx.ReadActionRules(ctx, actions, []string{})
	if err != nil {
		return fmt.Errorf("read the placement needs of %d actions: %w", len(actions), err)
	}
	needs := make(map[int64]placement.Need, len(rows))
	for _, row := range rows {
		needs[row.ID] = scheduler.NeedOf(row)
	}
	found := map[int64]*Taker{}
	for _, g := range groups {
		need, err := needs[g.Action].Override(placement.ReadOwn(g.Placement))
		need.Fence = true // executions move only to workers that refuse outdated dispatches
		taken := false
		if err == nil {
			for _, e := range fleet.Explain(need) {
				if e.Answer != placement.AnswerRoom && e.Answer != placement.AnswerFull {
					continue
				}
				taken = true
				if found[e.Worker.ID] == nil {
					found[e.Worker.ID] = &Taker{ID: e.Worker.ID, Name: e.Worker.Name, Room: max(e.Worker.Room(), 0)}
				}
				found[e.Worker.ID].Executions += g.Executions
			}
		}
		if !taken {
			plan.Alone += g.Executions
		}
	}
	for _, one := range found {
		plan.Takers = append(plan.Takers, *one)
	}
	slices.SortFunc(plan.Takers,
		func(a, b Taker) int { return cmp.Or(cmp.Compare(b.Room, a.Room), cmp.Compare(a.ID, b.ID)) })
	return nil
}
