package eventing_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/eventing"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records the messages to publish.
type relay struct {
	mu       sync.Mutex
	messages []outbox.Message // guarded by mu
}

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
}

// asked lists the enforcements whose executions were requested.
func (r *relay) asked(t *testing.T) []int64 {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []int64
	for _, m := range r.messages {
		require.Equal(t, message.ExchangeExecutions, m.Exchange)
		require.Equal(t, message.KeyEnforcementCreated, m.RoutingKey)
		envelope, err := message.Decode[message.EnforcementCreated](m.Body)
		require.NoError(t, err)
		ids = append(ids, envelope.Payload.EnforcementID)
	}
	slices.Sort(ids)
	return ids
}

type bundle struct {
	t        *testing.T
	store    *store.Store
	relay    *relay
	registry *prometheus.Registry
	matcher  *eventing.Matcher
	action   testkit.ActionRow
}

const key = "a key of at least thirty-two characters"

func setup(t *testing.T, options ...func(*eventing.Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, store: testkit.Store(t), relay: &relay{}, registry: prometheus.NewRegistry()}
	keys, err := secret.NewKeyring(key)
	require.NoError(t, err)
	cfg := eventing.Config{Keys: keys}
	for _, option := range options {
		option(&cfg)
	}
	b.matcher = eventing.New(cfg, b.store, b.relay, testkit.Logger(t), eventing.NewMetrics(b.registry))
	b.action = testkit.Action(t, b.store, "demo.act", func(a *testkit.ActionRow) {
		a.ParamSchema = map[string]any{
			"text":  map[string]any{"type": "string"},
			"token": map[string]any{"type": "string", "secret": true},
		}
	})
	b.trigger("demo.door")
	return b
}

func (b *bundle) id(sql string, args ...any) int64 {
	b.t.Helper()
	return int64(testkit.Count(b.t, b.store, sql, args...))
}

func (b *bundle) trigger(ref string) {
	b.t.Helper()
	b.id(`insert into trigger (ref, label) values ($1, $1) returning id`, ref)
}

// rule makes a rule of the trigger demo.door with these conditions and parameters.
func (b *bundle) rule(ref, conditions, params string) int64 {
	b.t.Helper()
	return b.id(`insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, conditions, action_params, enabled)
		select $1, $2, 'demo', $1, $3, 'demo.act', t.id, t.ref, $4, $5, true from trigger t where t.ref = 'demo.door' returning id`,
		ref, b.action.PackID, b.action.ID, conditions, params)
}

func (b *bundle) event(payload string) int64 {
	b.t.Helper()
	return b.id(`insert into event (trigger, trigger_ref, payload) select t.id, t.ref, nullif($1, '')::jsonb from trigger t where t.ref = 'demo.door' returning id`, payload)
}

func (b *bundle) match(ids ...int64) eventing.Result {
	b.t.Helper()
	result, err := b.matcher.Match(testkit.Context(b.t), ids)
	require.NoError(b.t, err)
	return result
}

func (b *bundle) text(sql string, args ...any) string {
	b.t.Helper()
	var text *string
	require.NoError(b.t, b.store.Pool().QueryRow(testkit.Context(b.t), sql, args...).Scan(&text), sql)
	if text == nil {
		return ""
	}
	return *text
}

// Every rule that an event fires has an enforcement with its rendered parameters,
// and asks for an execution; the others have none. Again changes nothing (S10).
func TestAnEventFiresItsRulesOnce(t *testing.T) {
	b := setup(t)
	all := b.rule("demo.all", `[]`, `{"text":"{{ event.payload.who }} at {{ event.id }}"}`)
	open := b.rule("demo.open", `{"any":[{"field":"state","operator":"equals","value":"open"}]}`, `{}`)
	b.rule("demo.shut", `[{"field":"state","operator":"equals","value":"shut"}]`, `{}`)
	b.rule("demo.odd", `{"expression":"event.payload.count > 1"}`, `{}`)
	event := b.event(`{"state":"open","who":"Ann"}`)

	require.Equal(t, eventing.Result{Events: 1, Created: 2}, b.match(event, event))
	require.Equal(t, 2, testkit.Count(t, b.store,
		`select count(*) from enforcement where event = $1 and status = 'created' and error is null`, event))
	require.JSONEq(t, fmt.Sprintf(`{"text":"Ann at %d"}`, event),
		b.text(`select config::text from enforcement where rule = $1`, all))
	require.Equal(t, "all", b.text(`select condition::text from enforcement where rule = $1`, all))
	require.Equal(t, "any", b.text(`select condition::text from enforcement where rule = $1`, open))
	require.JSONEq(t, `{"state":"open","who":"Ann"}`,
		b.text(`select payload::text from enforcement where rule = $1`, open))
	require.JSONEq(t, `{"any":[{"field":"state","operator":"equals","value":"open"}]}`,
		b.text(`select conditions::text from enforcement where rule = $1`, open))
	require.Equal(t, "4/2", b.text(`select rules || '/' || matched from event_matched where event = $1`, event))
	require.Contains(t, b.text(`select failures[1] from event_matched where event = $1`, event),
		"rule demo.odd: conditions.expression: column ")
	asked := b.relay.asked(t)
	require.Len(t, asked, 2)

	// A duplicate message requests the execution again while no batch has processed the first request.
	require.Equal(t, eventing.Result{Repeated: 1}, b.match(event))
	require.Len(t, b.relay.asked(t), 4)
	testkit.Exec(t, b.store, `update enforcement set status = 'processed'`)
	b.rule("demo.late", `[]`, `{}`)
	b.match(event)
	require.Len(t, b.relay.asked(t), 4)
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from enforcement`), "an event meets the rules once")
}

// A path without a value is null, and the enforcement names it.
func TestPathsWithoutAValueAreNoted(t *testing.T) {
	b := setup(t)
	odd := b.rule("demo.odd", `[]`,
		`{"text":"by {{ event.paylod.who }}","other":["{{ event.payload.whom }}"],"null":"{{ event.payload.none }}"}`)
	fine := b.rule("demo.fine", `[]`, `{"text":"by {{ event.payload.who }}"}`)
	event := b.event(`{"who":"Ann","none":null}`)
	require.Equal(t, eventing.Result{Events: 1, Created: 2}, b.match(event))
	require.Equal(t,
		"these have no value and are null: other[0]: {{ event.payload.whom }}, text: {{ event.paylod.who }}",
		b.text(`select note from enforcement where rule = $1 and status = 'created' and error is null`, odd))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from enforcement where rule = $1 and note is null`, fine))
}

// Upstream 53: a rule that cannot be carried out does not affect others, and its enforcement has the error.
func TestARuleThatFailsHidesNoOther(t *testing.T) {
	b := setup(t)
	bad := map[string]int64{
		"rule demo.template: action_params: text: column 1: the template is not closed by }} in \"{{ event.id\"":                              b.rule("demo.template", `[]`, `{"text":"{{ event.id"}`),
		"rule demo.conditions: conditions[0].operator: \"like\" is unknown: use equals, not_equals, contains":                                 b.rule("demo.conditions", `[{"field":"a","operator":"like","value":1}]`, `{}`),
		"rule demo.leak: action_params: a secret of the pack's configuration would go to text, which action demo.act does not mark as secret": b.rule("demo.leak", `[]`, `{"text":"a {{ pack.config.token }}"}`),
	}
	actionless := b.rule("demo.actionless", `[]`, `{}`)
	good := b.rule("demo.good", `[]`, `{"text":"fine"}`)
	testkit.Exec(t, b.store,
		`update pack set config = '{"token":"hush"}', conf_schema = '{"token":{"type":"string","secret":true}}'`)
	testkit.Exec(t, b.store, `update rule set action = null, action_ref = 'demo.gone' where id = $1`, actionless)
	bad["rule demo.actionless: action: demo.gone does not exist"] = actionless
	event := b.event(`{"a":1}`)

	require.Equal(t, eventing.Result{Events: 1, Created: 1, Disabled: 4}, b.match(event))
	require.Len(t, b.relay.asked(t), 1)
	require.Equal(t, "created", b.text(`select status::text from enforcement where rule = $1`, good))
	for reason, rule := range bad {
		require.Equal(t, reason,
			b.text(`select error from enforcement where rule = $1 and status = 'disabled' and resolved_at is not null`,
				rule))
	}
	require.NoError(t, testutil.GatherAndCompare(b.registry, stringsReader(`
		# HELP attune_event_rules_total Matches of an event with a rule, by outcome.
		# TYPE attune_event_rules_total counter
		attune_event_rules_total{outcome="disabled"} 4
		attune_event_rules_total{outcome="failed"} 0
		attune_event_rules_total{outcome="fired"} 1
		attune_event_rules_total{outcome="no_match"} 0
	`), "attune_event_rules_total"))
}

// Some failing expressions are stored, and all of them are counted.
func TestOfManyFailuresSomeAreKept(t *testing.T) {
	b := setup(t)
	for i := range 25 {
		b.rule(fmt.Sprintf("demo.r%d", i), `{"expression":"event.payload.none"}`, `{}`)
	}
	event := b.event(`{}`)
	require.Equal(t, eventing.Result{Events: 1}, b.match(event))
	require.Equal(t, 20, testkit.Count(t, b.store,
		`select cardinality(failures) from event_matched where event = $1 and rules = 25 and matched = 0`, event))
	require.NoError(t, testutil.GatherAndCompare(b.registry, stringsReader(`
		# HELP attune_event_rules_total Matches of an event with a rule, by outcome.
		# TYPE attune_event_rules_total counter
		attune_event_rules_total{outcome="disabled"} 0
		attune_event_rules_total{outcome="failed"} 25
		attune_event_rules_total{outcome="fired"} 0
		attune_event_rules_total{outcome="no_match"} 0
	`), "attune_event_rules_total"))
}

// Upstream 55: disabled triggers and rules do not fire, and an event for one rule fires only that one. On an adopted
// schema only rules can be disabled, as before the adoption.
func TestDisabledTriggersAndRulesAreNotFired(t *testing.T) {
	b := setup(t)
	one := b.rule("demo.one", `[]`, `{}`)
	two := b.rule("demo.two", `[]`, `{}`)
	testkit.Exec(t, b.store, `update rule set enabled = false where id = $1`, two)
	require.Equal(t, 1, b.match(b.event(`{}`)).Created)

	mine := b.event(`{}`)
	other := b.event(`{}`)
	lost := b.event(`{}`)
	testkit.Exec(t, b.store, `update event set rule = $2, rule_ref = 'demo.one' where id = $1`, mine, one)
	testkit.Exec(t, b.store, `update event set rule = $2, rule_ref = 'demo.two' where id = $1`, other, two)
	testkit.Exec(t, b.store, `update event set rule_ref = 'demo.gone' where id = $1`, lost)
	require.Equal(t, 1, b.match(mine).Created)
	require.Zero(t, b.match(other).Created, "the rule is disabled")
	require.Zero(t, b.match(lost).Created, "an event for a rule that is gone fires no other")

	testkit.Exec(t, b.store, `update trigger set enabled = false`)
	testkit.Exec(t, b.store, `update attune_schema_origin set origin = 'own'`)
	require.Zero(t, b.match(b.event(`{}`)).Created)
	testkit.Exec(t, b.store, `update attune_schema_origin set origin = 'adopted'`)
	require.Equal(t, 1, b.match(b.event(`{}`)).Created)
}

// Secret parameters of the action and of the pack's configuration are encrypted everywhere.
func TestSecretParametersAreSealed(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `update pack set config = '{"token":"hush","host":"h"}', conf_schema = '{"token":{"type":"string","secret":true}}'`)
	rule := b.rule("demo.config", `[]`, `{"token":"Bearer {{ pack.config.token }}","text":"{{ pack.config.host }}"}`)
	literal := b.rule("demo.literal", `[]`, `{"token":"{{ event.payload.t }}"}`)
	event := b.event(`{"t":"whisper"}`)
	require.Equal(t, 2, b.match(event).Created)

	keys, err := secret.NewKeyring(key)
	require.NoError(t, err)
	for _, c := range []struct {
		rule               int64
		config, kind, want string
	}{
		{rule, `{"token":{"$attune_secret":true,"redacted":true},"text":"h"}`, secret.FromPackConfig, "Bearer hush"},
		{literal, `{"token":{"$attune_secret":true,"redacted":true}}`, secret.FromSchema, "whisper"},
	} {
		require.JSONEq(t, c.config, b.text(`select config::text from enforcement where rule = $1`, c.rule))
		id := b.id(`select id from enforcement where rule = $1`, c.rule)
		rows, err := b.store.ReadSecretValues(testkit.Context(t), []int64{id}, secret.OfEnforcement)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, "/token", rows[0].JsonPath)
		require.Equal(t, c.kind, rows[0].SourceKind)
		value, err := keys.Open(secret.Sealed{
			Path: rows[0].JsonPath, Value: rows[0].EncryptedValue,
			KeyHash: rows[0].EncryptionKeyHash,
		})
		require.NoError(t, err)
		require.Equal(t, c.want, value)
	}
	require.Zero(t, testkit.Count(t, b.store,
		`select count(*) from outbox o, unnest(o.bodies) body where convert_from(body, 'UTF8') like '%hush%'`))
}

func TestSecretParametersNeedAKey(t *testing.T) {
	b := setup(t, func(c *eventing.Config) { c.Keys = secret.Keyring{} })
	rule := b.rule("demo.literal", `[]`, `{"token":"open"}`)
	require.Equal(t, 1, b.match(b.event(`{}`)).Disabled)
	require.Contains(t, b.text(`select error from enforcement where rule = $1`, rule),
		"security.encryption_key is not set")
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from enforcement where config::text like '%open%'`))
}

// An event whose row is not committed yet is reported, and the others are matched.
func TestEventsWithoutARowAreReported(t *testing.T) {
	b := setup(t)
	b.rule("demo.one", `[]`, `{}`)
	testkit.Exec(t, b.store, `update rule set created = now() - interval '30 days'`)
	event := b.event(``)
	old := b.event(`[1]`)
	b.age("event", old, 20*24*time.Hour)
	result := b.match(event, old, 1<<40, 1<<41)
	require.Equal(t, []int64{1 << 40, 1 << 41}, result.Missing)
	require.Equal(t, 2, result.Created)
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from enforcement where payload = '{}'`),
		"only objects are kept")
}

// S10 under contention: replicas with the same events in any order make each
// enforcement once, and none of them fails.
func TestReplicasWithTheSameEventsMakeOneEnforcementEach(t *testing.T) {
	b := setup(t)
	const events, rules = 40, 5
	for i := range rules {
		b.rule(fmt.Sprintf("demo.r%d", i), `[]`, `{}`)
	}
	ids := make([]int64, events)
	for i := range ids {
		ids[i] = b.event(`{}`)
	}
	var replicas errgroup.Group
	for replica := range 4 {
		replicas.Go(func() error {
			mine := slices.Clone(ids)
			if replica%2 == 1 {
				slices.Reverse(mine)
			}
			for part := range slices.Chunk(append(mine, mine...), 7+replica) {
				if _, err := b.matcher.Match(testkit.Context(t), part); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, replicas.Wait())
	require.Equal(t, events*rules, testkit.Count(t, b.store, `select count(*) from enforcement`))
	require.Equal(t, events*rules, testkit.Count(t, b.store, `select count(distinct (rule, event)) from enforcement`))
	require.Equal(t, events, testkit.Count(t, b.store, `select count(*) from event_matched where matched = $1`, rules))
}

// A batch that fires too much for one transaction is done in several.
func TestALargeBatchIsParted(t *testing.T) {
	b := setup(t, func(c *eventing.Config) { c.MaxEnforcements = 10 })
	for i := range 12 {
		b.rule(fmt.Sprintf("demo.r%d", i), `[]`, `{}`)
	}
	ids := []int64{b.event(`{}`), b.event(`{}`), b.event(`{}`)}
	require.Equal(t, eventing.Result{Events: 3, Created: 36}, b.match(ids...))
	require.Equal(t, 3, testkit.Count(t, b.store, `select count(*) from outbox`), "a transaction for each")
}

// An enforcement of another program is kept, and its execution is requested.
func TestAnEnforcementOfAnotherIsKept(t *testing.T) {
	b := setup(t)
	rule := b.rule("demo.one", `[]`, `{"text":"ours"}`)
	event := b.event(`{}`)
	theirs := b.id(`insert into enforcement (rule, rule_ref, trigger_ref, event, payload, config)
		values ($1, 'demo.one', 'demo.door', $2, '{}', '{"text":"theirs"}') returning id`, rule, event)
	require.Equal(t, eventing.Result{Events: 1}, b.match(event))
	require.Equal(t, []int64{theirs}, b.relay.asked(t))
	require.JSONEq(t, `{"text":"theirs"}`, b.text(`select config::text from enforcement`))
}

// The message has the members that existing services expect.
func TestTheMessageOfAnEnforcement(t *testing.T) {
	b := setup(t)
	rule := b.rule("demo.one", `[]`, `{}`)
	event := b.event(`{"a":1}`)
	b.match(event)
	envelope, err := message.Decode[message.EnforcementCreated](b.relay.messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, message.EnforcementCreated{
		EnforcementID: b.id(`select id from enforcement`), RuleID: &rule, RuleRef: "demo.one", EventID: &event,
		TriggerRef: "demo.door", Payload: json.RawMessage(`{"a":1}`),
	}, withCompact(t, envelope.Payload))
	require.WithinDuration(t, time.Now(), envelope.Timestamp, time.Minute)
}

// A rule whose action emits the rule's own trigger ends: the depth of an event is that of
// the event that led to its execution, whose own row, workflow or first attempt has the
// enforcement, and one more.
func TestRulesThatFireEachOtherEnd(t *testing.T) {
	b := setup(t, func(c *eventing.Config) { c.MaxDepth = 3 })
	b.rule("demo.loop", `[]`, `{}`)
	event := b.event(`{}`)
	for depth := range 3 {
		require.Equal(t, eventing.Result{Events: 1, Created: 1}, b.match(event), "depth %d", depth)
		enforcement := b.id(`select id from enforcement where event = $1`, event)
		parent := testkit.Execution(t, b.store, b.action,
			func(e *testkit.ExecutionRow) { e.Enforcement = &enforcement })
		again := testkit.Execution(t, b.store, b.action,
			func(e *testkit.ExecutionRow) { e.OriginalExecution = &parent.ID })
		emits := testkit.Execution(t, b.store, b.action, func(e *testkit.ExecutionRow) { e.Parent = &again.ID })
		event = b.event(`{}`)
		require.NoError(t, b.store.RecordEventOrigins(testkit.Context(t), []int64{event}, []int64{emits.ID}))
		require.Equal(t, depth+1, testkit.Count(t, b.store,
			`select depth from event_origin where event = $1 and execution = $2`, event, emits.ID))
	}
	require.Equal(t, eventing.Result{Events: 1, Disabled: 1}, b.match(event))
	require.Regexp(t,
		`^3 rules led to this event, which execution \d+ emitted, and 3 is the most \(executor\.rule_depth\)`,
		b.text(`select error from enforcement where event = $1 and status = 'disabled'`, event))

	byHand := b.event(`{}`)
	require.NoError(t, b.store.RecordEventOrigins(testkit.Context(t), []int64{byHand},
		[]int64{testkit.Execution(t, b.store, b.action).ID}))
	require.Equal(t, eventing.Result{Events: 1, Created: 1}, b.match(byHand),
		"an execution that no rule requested begins a chain")
}
