package eventing

import (
	"cmp"
	"context"
	"fmt"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

type event struct {
	row      store.ReadEventsRow
	event    rule.Event
	err      error // its payload is unreadable
	rules    int   // number of matched rules
	matched  int
	failed   int      // rules whose expression failed
	failures []string // the first reasons
	fires    []*fire
}

func newEvent(row store.ReadEventsRow) *event {
	e := &event{row: row}
	e.event, e.err = rule.NewEvent(row.ID, row.TriggerRef, row.Payload, row.Created)
	return e
}

// candidate is one rule, read once a batch.
type candidate struct {
	row          store.FindRulesRow
	conditions   *rule.Conditions // nil if unreadable
	params       *rule.Params
	unreadable   error // why its conditions are unreadable
	unfillable   error // why its parameters are invalid
	failedEvents int   // number of events for which its expression failed
	failedFires  int   // number of events for which it fired and failed
	why          error // the last reason of either
}

// fire is a rule that an event fires.
type fire struct {
	event   *event
	rule    *candidate
	err     error // why it fails
	config  []byte
	note    string // a remark for users
	secrets []secret.Sealed
}

func (f *fire) mode() string {
	if f.rule.conditions == nil {
		return rule.All
	}
	return f.rule.conditions.Mode()
}

func newCandidate(row store.FindRulesRow) *candidate {
	c := &candidate{row: row}
	c.conditions, c.unreadable = rule.ParseConditions(row.Ref, row.Conditions)
	c.params, c.unfillable = rule.ParseParams(row.Ref, row.ActionParams)
	return c
}

// rules are the candidates of a batch by each key.
type rules struct {
	byID      map[int64]*candidate
	byRef     map[string]*candidate
	byTrigger map[string][]*candidate
}

// of lists the rules of an event. An event for one rule never fires another, even if that rule is
// deleted.
func (r rules) of(e *event) []*candidate {
	var one *candidate
	switch {
	case e.row.Rule != nil:
		one = r.byID[*e.row.Rule]
	case e.row.RuleRef != "":
		one = r.byRef[e.row.RuleRef]
	default:
		return r.byTrigger[e.row.TriggerRef]
	}
	if one == nil {
		return nil
	}
	return []*candidate{one}
}

func (b *batch) find(ctx context.Context) (rules, error) {
	var triggers, refs []string
	var ids []int64
	seen := map[string]bool{}
	for _, e := range b.events {
		switch {
		case e.row.Rule != nil:
			ids = append(ids, *e.row.Rule)
		case e.row.RuleRef != "":
			refs = append(refs, e.row.RuleRef)
		case !seen[e.row.TriggerRef]:
			seen[e.row.TriggerRef] = true
			triggers = append(triggers, e.row.TriggerRef)
		}
	}
	rows, err := b.tx.FindRules(ctx, triggers, ids, refs)
	if err != nil {
		return rules{}, fmt.Errorf("find the rules of %d triggers: %w", len(triggers), err)
	}
	found := rules{byID: map[int64]*candidate{}, byRef: map[string]*candidate{}, byTrigger: map[string][]*candidate{}}
	for _, row := range rows {
		c := newCandidate(row)
		b.rules = append(b.rules, c)
		found.byID[row.ID], found.byRef[row.Ref] = c, c
		found.byTrigger[row.TriggerRef] = append(found.byTrigger[row.TriggerRef], c)
	}
	return found, nil
}

func (b *batch) matchAll(ctx context.Context) error {
	found, err := b.find(ctx)
	if err != nil {
		return err
	}
	for _, e := range b.events {
		for _, c := range found.of(e) {
			if e.row.BeforeMatching && c.row.Created.After(e.row.Created) {
				continue // the rule is newer than an event that was not matched in time
			}
			e.rules++
			b.compare(e, c)
		}
	}
	return nil
}

// maxFailures bounds the stored reasons of an event.
const maxFailures = 20

// compare matches one rule. An unreadable rule fires, so that its failure appears among its
// enforcements.
func (b *batch) compare(e *event, c *candidate) {
	if err := cmp.Or(c.unreadable, e.err); err != nil {
		b.fire(&fire{event: e, rule: c, err: err})
		return
	}
	verdict := c.conditions.Match(e.event)
	switch {
	case verdict.Matched && int(e.row.Depth) >= b.cfg.MaxDepth:
		b.fire(&fire{
			event: e, rule: c,
			err: fmt.Errorf("%d rules led to this event, which execution %d emitted, and %d is the most"+
				" (executor.rule_depth): does the action of a rule emit the rule's own trigger?", e.row.Depth,
				e.row.Origin, b.cfg.MaxDepth),
		})
	case verdict.Matched:
		b.fire(&fire{event: e, rule: c, err: c.unfillable})
	case verdict.Err != nil:
		if e.failed++; len(e.failures) < maxFailures {
			e.failures = append(e.failures, reason(verdict.Err))
		}
		c.failedEvents, c.why = c.failedEvents+1, verdict.Err
	}
}

func (b *batch) fire(f *fire) {
	f.event.matched++
	f.event.fires = append(f.event.fires, f)
	b.fires = append(b.fires, f)
}
