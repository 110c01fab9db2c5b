package eventing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/eventing"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// BenchmarkMatch compares batches of 200 events with the rules: one of ten thousand
// is of the trigger, or all of a hundred are, of which one fires.
func BenchmarkMatch(b *testing.B) {
	for name, c := range map[string]struct{ ours, others int }{
		"one of 10000 rules is of the trigger": {1, 10_000}, "all of 100 rules are of the trigger": {100, 0},
	} {
		b.Run(name, func(b *testing.B) {
			st := testkit.Store(b)
			action := testkit.Action(b, st, "demo.act")
			testkit.Exec(b, st, `insert into trigger (ref, label) values ('demo.door', 'x')`)
			rules := `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger_ref, conditions, action_params, enabled)
				select $1 || i, $2, 'demo', 'x', $3, 'demo.act', $4 || case when $4 = 'demo.door' then '' else i::text end,
					jsonb_build_array(jsonb_build_object('field', 'n', 'operator', 'equals', 'value', i)), '{"text":"{{ event.payload.n }}"}', true
				from generate_series(1, $5::int) i`
			testkit.Exec(b, st, rules, "demo.r", action.PackID, action.ID, "demo.door", c.ours)
			testkit.Exec(b, st, rules, "demo.o", action.PackID, action.ID, "demo.t", c.others)
			testkit.Exec(b, st, `analyze`)
			matcher := eventing.New(eventing.Config{Keys: secret.Keyring{}}, st, &relay{}, telemetry.Discard(), nil)
			const batch = 200
			var next int64 = 1
			for b.Loop() {
				b.StopTimer()
				testkit.Exec(b, st, `insert into event (trigger_ref, payload) select 'demo.door', '{"n":1}' from generate_series(1, $1::int)`, batch)
				ids := make([]int64, batch)
				for i := range ids {
					ids[i] = next + int64(i)
				}
				next += batch
				b.StartTimer()
				result, err := matcher.Match(b.Context(), ids)
				require.NoError(b, err)
				require.Equal(b, eventing.Result{Events: batch, Created: batch}, result, fmt.Sprint(ids[0]))
			}
			b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
