package alerting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// Partitions are found by their bounds, not by their names: another program may have named them
// otherwise, and a name does not prove that its day has a partition.
func TestPartitionsAreMissedByTheirBounds(t *testing.T) {
	t.Parallel()
	tomorrow := `to_char((now() + interval '1 day') at time zone 'utc', 'YYYYMMDD')`
	for name, c := range map[string]struct {
		make string
		want float64
		says string
	}{
		"by another name": {`do $$ begin execute format('alter table event_p%s rename to events_of_tomorrow', ` +
			tomorrow + `); end $$`, 0, ""},
		"the name of another day": {`do $$ declare child text := 'event_p' || ` + tomorrow + `; day timestamptz := date_trunc('day', now(), 'UTC'); begin
			execute format('drop table %I', child);
			execute format('create table %I partition of event for values from (%L) to (%L)', child, day + interval '90 days', day + interval '91 days');
			end $$`, 1, "the first gap is in "},
		"far ahead":  {`do $$ begin execute format('drop table event_p%s', to_char((now() + interval '6 days') at time zone 'utc', 'YYYYMMDD')); end $$`, 0, ""},
		"no default": {`drop table event_default`, 1, "the default partition"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupOn(t, testkit.OwnStore(t), shortened())
			b.exec(c.make)
			measures, err := b.view.Measure(t.Context())
			require.NoError(t, err)
			seen := 0
			for _, sample := range measures.Samples["partitions_missing"] {
				if sample.Target == "event" {
					require.InDelta(t, c.want, sample.Value, 0)
					require.Contains(t, sample.Detail, c.says)
					seen++
				} else {
					require.Zero(t, sample.Value)
				}
			}
			require.Equal(t, 1, seen)
		})
	}
}
