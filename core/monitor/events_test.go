package monitor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// gate is a trigger with its pack, in a database of its own.
type gate struct {
	t     *testing.T
	store *store.Store
	view  *monitor.Monitor
	pack  int64
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, store: testkit.Store(t)}
	g.view = monitor.New(monitor.Config{}, monitor.Deps{Store: g.store})
	g.pack = testkit.Pack(t, g.store, "demo").ID
	testkit.Exec(t, g.store, `insert into trigger (ref, label) values ('demo.gate', 'x')`)
	return g
}

func (g *gate) id(sql string, args ...any) int64 {
	g.t.Helper()
	return int64(testkit.Count(g.t, g.store, sql, args...))
}

func (g *gate) rule(ref, conditions string) int64 {
	g.t.Helper()
	return g.id(`insert into rule (ref, pack, pack_ref, label, action_ref, trigger, trigger_ref, conditions, enabled)
		select $1, $2, 'demo', 'x', 'demo.act', id, ref, $3, true from trigger where ref = 'demo.gate' returning id`, ref, g.pack, conditions)
}

func (g *gate) event() int64 {
	g.t.Helper()
	return g.id(`insert into event (trigger_ref, payload) values ('demo.gate', '{"state":"open"}') returning id`)
}

// verdicts are those of an event, as rule, verdict and reason.
func (g *gate) verdicts(event int64) (all []string, detail *monitor.EventDetail) {
	g.t.Helper()
	detail, err := g.view.EventDetail(testkit.Context(g.t), event)
	require.NoError(g.t, err)
	for _, one := range detail.Rules {
		all = append(all, fmt.Sprintf("%s|%s|%s", one.RuleRef, one.Verdict, one.Why))
	}
	return all, detail
}

// Every rule of the trigger has a verdict. Rules that fired come first, also deleted ones.
func TestEveryRuleOfAnEventHasAVerdict(t *testing.T) {
	g := newGate(t)
	event := g.event()
	fired, gone, broken := g.rule("demo.a", `[]`), g.rule("demo.gone", `[]`), g.rule("demo.b", `[]`)
	g.rule("demo.c", `[{"field":"state","operator":"equals","value":"shut"}]`)
	g.rule("demo.d", `{"expression":"event.payload.none"}`)
	g.rule("demo.e", `[{"field":"state","operator":"like","value":"x"}]`)
	changed, late, off := g.rule("demo.f", `[]`), g.rule("demo.g", `[]`), g.rule("demo.h", `[]`)
	testkit.Exec(t, g.store, `update rule set enabled = false where id = $1`, off)
	testkit.Exec(t, g.store, `update rule set created = now() - interval '1 day'`)
	testkit.Exec(t, g.store, `update rule set created = now() + interval '1 hour' where id = $1`, late)

	all, detail := g.verdicts(event)
	require.Nil(t, detail.Matched)
	require.Contains(t, detail.Note, "it waits to be compared with the rules")
	require.Contains(t, all, "demo.a|waiting|it matches: the rule has no conditions")

	testkit.Exec(t, g.store, `insert into event_matched (event, rules, matched, failures) values ($1, 7, 3, '{f}')`,
		event)
	for i, rule := range []int64{fired, gone, broken} {
		testkit.Exec(t, g.store, `insert into enforcement (rule, rule_ref, trigger_ref, event, payload, status, error)
			select id, ref, trigger_ref, $2, '{}', $3::text::enforcement_status_enum, nullif($4, '') from rule where id = $1`,
			rule, event, []string{"processed", "created", "disabled"}[i], []string{"", "", "no such thing"}[i])
	}
	testkit.Exec(t, g.store, `delete from rule where id = $1`, gone)
	execution := g.id(`insert into execution (action_ref, enforcement, status) select 'demo.act', id, 'completed' from enforcement where rule_ref = 'demo.a' returning id`)
	all, detail = g.verdicts(event)
	require.Equal(t, 7, detail.Compared)
	require.Equal(t, 3, detail.Fired)
	require.Equal(t, 1, detail.Disabled)
	require.Len(t, all, 9)
	require.Equal(t, []string{
		fmt.Sprintf("demo.a|fired|execution %d is completed", execution),
		"demo.b|disabled|no such thing",
		"demo.gone|fired|its execution is about to be made",
		`demo.c|no match|state is "open", not "shut"`,
	}, all[:4])
	require.Contains(t, all[4], "demo.d|failed|the expression could not be evaluated: ")
	require.Contains(t, all[5], `demo.e|failed|rule demo.e: conditions[0].operator: "like" is unknown`)
	require.Contains(t, all[6], "demo.f|passed|it matches now, but did not match or was disabled")
	require.Equal(t, "demo.g|passed|the rule was made after the event was compared with the rules", all[7])
	require.Equal(t, "demo.h|off|the rule is disabled", all[8])

	testkit.Exec(t, g.store, `update event set rule = $2, rule_ref = 'demo.f' where id = $1`, event, changed)
	all, detail = g.verdicts(event)
	require.Equal(t, "it is for rule demo.f only", detail.Note)
	require.Contains(t, all, "demo.c|passed|the event is for rule demo.f only")
	testkit.Exec(t, g.store, `update event set rule = null, rule_ref = null where id = $1`, event)
	testkit.Exec(t, g.store, `update trigger set enabled = false`)
	testkit.Exec(t, g.store, `update attune_schema_origin set origin = 'adopted'`)
	all, _ = g.verdicts(event)
	require.NotContains(t, all, "demo.c|off|trigger demo.gate is disabled", "its rules fire on an adopted schema")
	testkit.Exec(t, g.store, `update attune_schema_origin set origin = 'own'`)
	all, detail = g.verdicts(event)
	require.Equal(t, "trigger demo.gate is disabled and fires no rule", detail.Note)
	require.Contains(t, all, "demo.c|off|trigger demo.gate is disabled")
	testkit.Exec(t, g.store, `delete from trigger`)
	_, detail = g.verdicts(event)
	require.Equal(t, "trigger demo.gate does not exist any more", detail.Note)
	_, err := g.view.EventDetail(testkit.Context(t), 1<<40)
	require.ErrorIs(t, err, monitor.ErrNotFound)
}

// Lists go by pages, and say when their search stopped at its bound.
func TestEventsAndEnforcementsGoByPages(t *testing.T) {
	g := newGate(t)
	rule := g.rule("demo.a", `[]`)
	for range 5 {
		event := g.event()
		testkit.Exec(t, g.store, `insert into enforcement (rule, rule_ref, trigger_ref, event, payload, status) values ($1, 'demo.a', 'demo.gate', $2, '{}', 'disabled')`, rule, event)
	}
	testkit.Exec(t, g.store, `insert into event (trigger_ref) select 'demo.other' from generate_series(1, 25000)`)
	ctx := testkit.Context(t)

	events, err := g.view.Events(ctx, monitor.EventFilter{Limit: 2}, 0)
	require.NoError(t, err)
	require.Len(t, events.List, 2)
	require.Equal(t, events.List[1].ID, events.Next)
	require.False(t, events.Bounded)
	events, err = g.view.Events(ctx, monitor.EventFilter{Trigger: "demo.gate"}, 0)
	require.NoError(t, err)
	require.Empty(t, events.List)
	require.True(t, events.Bounded)
	events, err = g.view.Events(ctx, monitor.EventFilter{Trigger: "demo.gate"}, events.Next)
	require.NoError(t, err)
	require.Len(t, events.List, 5)
	require.Equal(t, 1, events.List[0].Disabled)
	require.Zero(t, events.Next)

	page, err := g.view.Enforcements(ctx, monitor.EnforcementFilter{Rule: "demo.a", Status: "disabled", Limit: 3}, 0)
	require.NoError(t, err)
	require.Len(t, page.List, 3)
	rest, err := g.view.Enforcements(ctx, monitor.EnforcementFilter{Rule: "demo.a", Limit: 3}, page.Next)
	require.NoError(t, err)
	require.Len(t, rest.List, 2)
	require.Zero(t, rest.Next)
	none, err := g.view.Enforcements(ctx, monitor.EnforcementFilter{Event: page.List[0].Event, Status: "created"}, 0)
	require.NoError(t, err)
	require.Empty(t, none.List)
	_, err = g.view.Enforcements(ctx, monitor.EnforcementFilter{Status: "done"}, 0)
	require.ErrorIs(t, err, monitor.ErrFilter)
	one, err := g.view.Enforcement(ctx, page.List[0].ID)
	require.NoError(t, err)
	require.Equal(t, page.List[0], one.Enforcement)
	_, err = g.view.Enforcement(ctx, 1<<40)
	require.ErrorIs(t, err, monitor.ErrNotFound)
}

// Rules count the outcomes of their newest enforcements, and name the reason why they do not fire.
func TestRulesCountTheOutcomesOfTheirEnforcements(t *testing.T) {
	g := newGate(t)
	rule := g.rule("demo.a", `[]`)
	testkit.Exec(t, g.store, `insert into enforcement (rule, rule_ref, trigger_ref, event, payload, status)
		select $1, 'demo.a', 'demo.gate', i, '{}', case when i % 10 = 0 then 'disabled' else 'processed' end::enforcement_status_enum from generate_series(1, 1500) i`, rule)
	testkit.Exec(t, g.store, `insert into rule (ref, pack, pack_ref, label, action_ref, trigger_ref, enabled)
		select 'many.r' || lpad(i::text, 4, '0'), $1, 'demo', 'x', 'demo.act', 'many.t', true from generate_series(1, 250) i`, g.pack)
	ctx := testkit.Context(t)
	page, err := g.view.Rules(ctx, "", "")
	require.NoError(t, err)
	require.Len(t, page.List, 200)
	first := page.List[0]
	require.Equal(t, "demo.a", first.Ref)
	require.Equal(t, monitor.RecentFirings, first.Fired)
	require.Equal(t, 100, first.Disabled)
	require.NotNil(t, first.LastFired)
	require.Equal(t, "action demo.act does not exist", first.Note)
	require.True(t, strings.HasPrefix(page.List[1].Note, "trigger many.t does not exist"))
	require.Nil(t, page.List[1].LastFired)
	page, err = g.view.Rules(ctx, "", page.Next)
	require.NoError(t, err)
	require.Len(t, page.List, 51)
	require.Empty(t, page.Next)
	detail, err := g.view.Rule(ctx, "demo.a")
	require.NoError(t, err)
	require.Equal(t, first, detail.Rule)
	_, err = g.view.Rule(ctx, "demo.none")
	require.ErrorIs(t, err, monitor.ErrNotFound)
}

// TestAnEnforcementShowsTheValuesThatDecided, and why its event would not fire the rule now.
func TestAnEnforcementShowsTheValuesThatDecided(t *testing.T) {
	g := newGate(t)
	rule := g.rule("demo.hot", `{"expression": "event.payload.count >= 10"}`)
	id := g.id(`insert into enforcement (rule, rule_ref, trigger_ref, config, status, payload, condition, conditions)
		select id, ref, trigger_ref, '{}', 'processed', '{"count": 12}', 'all', conditions from rule where id = $1 returning id`, rule)
	one, err := g.view.Enforcement(testkit.Context(t), id)
	require.NoError(t, err)
	require.Equal(t, "the expression event.payload.count >= 10 matched: event.payload.count is 12", one.Matched)
	require.Empty(t, one.Now)

	testkit.Exec(t, g.store,
		`update rule set conditions = '[{"field": "count", "operator": "equals", "value": 13}]' where id = $1`, rule)
	one, err = g.view.Enforcement(testkit.Context(t), id)
	require.NoError(t, err)
	require.Equal(t, "the rule has changed since, and the event would not fire it: count is 12, not 13", one.Now)
}
