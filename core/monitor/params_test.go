package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
)

// everySchema are the databases of a test.
var everySchema = map[string]func(t testing.TB) string{
	"Own": testkit.Database, "Adopted": testkit.AdoptedDatabase,
	"Unmigrated": func(t testing.TB) string { t.Helper(); return testkit.Installation(t, installation.Newest) },
}

// request writes an execution, and its action if that is missing, by the columns that every
// schema has.
func request(t *testing.T, st *store.Store, ref, schema, config string) int64 {
	t.Helper()
	testkit.Exec(t, st,
		`insert into pack (ref, label, version) values ('shop', 'shop', '1.0.0') on conflict do nothing`)
	testkit.Exec(t, st, `insert into action (ref, pack, pack_ref, label, entrypoint, param_schema)
		select $1::text, p.id, p.ref, $1::text, 'run.sh', $2::text::jsonb from pack p where p.ref = 'shop' on conflict (ref) do nothing`, ref, schema)
	testkit.Exec(t, st, `insert into execution (action, action_ref, config) select a.id, a.ref, $2::text::jsonb from action a where a.ref = $1`, ref, config)
	return int64(testkit.Count(t, st, `select max(id) from execution`))
}

func foundBy(t *testing.T, m *Monitor, f ExecutionFilter) []int64 {
	t.Helper()
	page, err := m.Executions(t.Context(), f, 0)
	require.NoError(t, err)
	ids := []int64{}
	for _, x := range page.List {
		ids = append(ids, x.ID)
	}
	return ids
}

func TestExecutionsAreFoundByTheirParameters(t *testing.T) {
	t.Parallel()
	for name, database := range everySchema {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := testkit.OpenStore(t, database(t))
			m := New(Config{}, Deps{Store: st})
			row := func(config string) int64 { return request(t, st, "shop.bill", "{}", config) }
			german := row(`{"tenant": "t7", "order": {"country": "DE"}, "amount": 7, "dry": true, "lines": ["a", "b"]}`)
			french := row(`{"tenant": "t70", "order": {"country": "FR"}, "amount": "7.0", "dry": false}`)
			precise := row(`{"amount": 7.50, "tenant": null}`)
			bare := row(`{}`)
			for _, test := range []struct {
				want []int64
				by   []ParamMatch
			}{
				{[]int64{german}, []ParamMatch{{Path: "tenant", Values: []string{"T7"}}}},
				{[]int64{french, german}, []ParamMatch{{Path: "tenant", Values: []string{"t7*"}}}},
				{[]int64{german}, []ParamMatch{
					{Path: "order.country", Values: []string{"de"}},
					{Path: "tenant", Values: []string{"t7", "t8"}},
				}},
				{
					[]int64{bare, precise, german},
					[]ParamMatch{{Path: "order.country", Values: []string{"fr"}, Not: true}},
				},
				{[]int64{french, german}, []ParamMatch{{Path: "amount", Values: []string{"7.0"}}}},
				{[]int64{precise}, []ParamMatch{{Path: "amount", Values: []string{"7.5"}}}},
				{[]int64{german}, []ParamMatch{{Path: "dry", Values: []string{"true"}}}},
				{[]int64{german}, []ParamMatch{{Path: "lines.1", Values: []string{"b"}}}},
				{[]int64{}, []ParamMatch{{Path: "tenant.x", Values: []string{"*"}}}},
				{[]int64{}, []ParamMatch{{Path: "order", Values: []string{"*"}}}}, // an object is no text
				{[]int64{bare, precise}, []ParamMatch{{Path: "tenant", Values: []string{"*"}, Not: true}}},
			} {
				require.Equal(t, test.want, foundBy(t, m, ExecutionFilter{Params: test.by}), "%+v", test.by)
			}
			require.Equal(t, []int64{french}, foundBy(t, m, ExecutionFilter{MinID: french, MaxID: french}))
			require.Equal(t, []int64{precise, french}, foundBy(t, m, ExecutionFilter{MinID: french, MaxID: precise}))
			require.Equal(t, []int64{french}, foundBy(t, m,
				ExecutionFilter{MinID: french, Params: []ParamMatch{{Path: "tenant", Values: []string{"t7*"}}}}))
		})
	}
}

// A filter matches neither the placeholder of a secret, nor a plain value that the action marks as secret.
func TestASecretParameterIsNeverMatched(t *testing.T) {
	t.Parallel()
	for name, database := range everySchema {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := testkit.OpenStore(t, database(t))
			m := New(Config{}, Deps{Store: st})
			const marks = `{"pass": {"type": "string", "secret": true}, "card": {"type": "object", "secret": true},
				"items": {"type": "array", "items": {"type": "object", "properties": {"pin": {"secret": true, "type": "string"}}}}}`
			open := request(t, st, "shop.pay", marks,
				`{"pass": "hunter2", "card": {"number": "4711"}, "items": [{"pin": "1234", "n": "1"}], "tenant": "t7"}`)
			sealed := request(t, st, "shop.see", "{}",
				`{"tenant": "t7", "pass": {"$attune_secret": true, "redacted": true}}`)
			other := request(t, st, "shop.see", "{}",
				`{"pass": "open", "tenant": "t7", "url": "amqp://ann:hunter2@host/v", "api_key": "k1"}`)
			for path, want := range map[string][]int64{
				"pass": {other}, "api_key": {}, "url": {other}, "card.number": {}, "items.0.pin": {},
				"items.0.n": {open}, "pass.redacted": {}, "tenant": {other, sealed, open},
			} {
				require.Equal(t, want,
					foundBy(t, m, ExecutionFilter{Params: []ParamMatch{{Path: path, Values: []string{"*"}}}}), path)
			}
			// A negated term does not reveal a secret either.
			for _, guess := range []string{"hunter2", "hunter3"} {
				require.Contains(t, foundBy(t, m,
					ExecutionFilter{Params: []ParamMatch{{Path: "pass", Values: []string{guess}, Not: true}}}), open)
			}
			require.Empty(t,
				foundBy(t, m, ExecutionFilter{Params: []ParamMatch{{Path: "url", Values: []string{"*hunter2*"}}}}))
			page, err := m.Executions(t.Context(), ExecutionFilter{WithParams: true}, 0)
			require.NoError(t, err)
			require.Equal(t, "api_key=‹redacted› pass=open tenant=t7 url=amqp://ann:‹redacted›@host/v",
				page.List[0].Params)
			require.Equal(t, "pass=‹redacted› tenant=t7", page.List[1].Params)
			require.Equal(t, "card=‹redacted› items.0.n=1 items.0.pin=‹redacted› pass=‹redacted› tenant=t7",
				page.List[2].Params)
			page, err = m.Executions(t.Context(), ExecutionFilter{}, 0)
			require.NoError(t, err)
			require.Empty(t, page.List[2].Params, "read only where it is shown")
		})
	}
}

// A choice returns all matches among the newest rows up to its bound, and reports when it stops there.
func TestAChoiceByParametersIsComplete(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "shop.bill")
	tenants(t, b.Store, action.ID, 7_000)
	f := ExecutionFilter{
		Statuses: []lifecycle.Status{lifecycle.StatusRequested}, Match: []string{"^shop.bill$"},
		Params: []ParamMatch{{Path: "tenant", Values: []string{"t7"}}},
	}
	chosen, err := b.Choose(t.Context(), f, 10_000)
	require.NoError(t, err)
	require.Len(t, chosen.IDs, 700)
	require.False(t, chosen.Bounded)
	require.False(t, chosen.More)
	require.EqualValues(t, 7_000, chosen.Looked)

	f.Oldest = true
	oldest, err := b.Choose(t.Context(), f, 3)
	require.NoError(t, err)
	require.Equal(t, []int64{chosen.IDs[699], chosen.IDs[698], chosen.IDs[697]}, oldest.IDs)
	require.True(t, oldest.More)

	page, err := b.Executions(t.Context(), ExecutionFilter{Params: f.Params, Limit: 1_000}, 0)
	require.NoError(t, err)
	require.True(t, page.Bounded)
	require.EqualValues(t, paramBound, page.Looked)
	require.Len(t, page.List, paramBound/10)
	require.NotZero(t, page.Next)
}

// Every search goes on where it stopped, to the end, and says about how much is left. Also one that finds nothing at
// first.
func TestASearchGoesOnToItsEnd(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "shop.bill")
	tenants(t, b.Store, action.ID, 12_000)
	testkit.Exec(t, b.Store, `update execution set config = '{"note": "XK-77"}', action_ref = 'shop.rare', retry_count = 1
		where id in (select min(id) from execution union select min(id) + 6500 from execution)`)
	requested := []lifecycle.Status{lifecycle.StatusRequested}
	for name, f := range map[string]ExecutionFilter{
		"parameter":      {Params: []ParamMatch{{Path: "note", Values: []string{"*77*"}}}},
		"action":         {Action: "shop.rare"},
		"word":           {Match: []string{"rare"}},
		"tries":          {MinTries: 1},
		"waiting":        {Action: "shop.rare", Statuses: requested, InOrder: true},
		"waiting, tries": {MinTries: 1, Statuses: requested, InOrder: true},
		"alternatives":   {Action: "shop.rare", Or: []ExecutionFilter{{Action: "shop.none"}}},
		"oldest":         {Action: "shop.rare", Oldest: true},
	} {
		var found []int64
		looked, pages := int64(0), 0
		for cursor := int64(0); ; pages++ {
			page, err := b.Executions(t.Context(), f, cursor)
			require.NoError(t, err, name)
			for i := range page.List {
				found = append(found, page.List[i].ID)
			}
			looked += page.Looked
			if cursor = page.Next; cursor == 0 {
				require.False(t, page.Bounded, name)
				break
			}
			require.True(t, page.Bounded, name)
			if len(f.Or) == 0 {
				require.InDelta(t, 12_000, looked+page.Left, 100, name)
			}
		}
		require.Len(t, found, 2, name)
		require.Greater(t, pages, 1, name)
		if len(f.Or) == 0 {
			require.EqualValues(t, 12_000, looked, name)
		}
	}
	// A list of unfinished executions also begins with the other end, and goes on.
	page, err := b.Executions(t.Context(), ExecutionFilter{Action: "shop.rare", Statuses: requested}, 0)
	require.NoError(t, err)
	require.Len(t, page.List, 1, "the oldest")
	require.True(t, page.Bounded)
	require.Greater(t, page.Next, page.List[0].ID)
}

func TestAChoiceStopsAtItsBound(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "exceed the bound of a choice")
	b := setup(t, nil)
	tenants(t, b.Store, testkit.Action(t, b.Store, "shop.bill").ID, ChoiceBound+10)
	chosen, err := b.Choose(t.Context(),
		ExecutionFilter{Params: []ParamMatch{{Path: "tenant", Values: []string{"t7"}}}}, ChoiceBound)
	require.NoError(t, err)
	require.True(t, chosen.Bounded)
	require.EqualValues(t, ChoiceBound, chosen.Looked)
	require.Len(t, chosen.IDs, ChoiceBound/10)
}

// tenants makes n waiting executions of ten tenants in turn.
func tenants(t *testing.T, st *store.Store, action int64, n int) {
	t.Helper()
	testkit.Exec(t, st, `alter table execution disable trigger user`)
	testkit.Exec(t, st, `insert into execution (action, action_ref, status, config, created)
		select $1, 'shop.bill', 'requested', jsonb_build_object('tenant', 't' || g % 10), now() - $3::interval from generate_series(1, $2::int) g`,
		action, n, time.Hour.String())
}
