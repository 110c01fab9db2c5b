package datapath

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/measure"
	"github.com/attune-go/attune/lab/testkit"
)

// The floor program writes the rows of the product: as many inserts, updates and deletes in every table.
func TestTheFloorWritesTheRowsOfTheProduct(t *testing.T) {
	t.Parallel()
	for _, l := range []Load{
		{What: "one at a time", Together: 1, Executions: 6},
		{What: "a flood", Limit: 3, Executions: 12},
	} {
		t.Run(l.What, func(t *testing.T) {
			t.Parallel()
			s := testServer(t)
			ctx := testkit.Context(t)
			var written [2]map[string][3]int
			for side := range written {
				one, err := s.contender(ctx, side, l, nil)
				require.NoError(t, err)
				_, err = one.lap(ctx, l)
				require.NoError(t, err)
				written[side] = writtenRows(t, s, one)
			}
			require.Equal(t, [3]int{l.Executions, 3 * l.Executions, 0}, written[0]["execution"])
			require.Equal(t, 4*l.Executions, written[0]["execution_history"][0])
			stats := written[0]["queue_stats"]
			written[0]["queue_stats"] = [3]int{stats[0], stats[1] - 1, 0} // the product's first one is an insert
			if l.Limit > 0 {                                              // the batches of the product are of any size
				for _, rows := range written {
					for _, name := range []string{"execution_admission_state", "queue_stats", "worker_load", "outbox"} {
						delete(rows, name)
					}
				}
			}
			require.Equal(t, written[1], written[0])
		})
	}
}

// writtenRows are the inserted, updated and deleted rows of the tables, when all sessions have reported them.
func writtenRows(t *testing.T, s *server, one contender) map[string][3]int {
	t.Helper()
	ctx := testkit.Context(t)
	var w *world
	switch one := one.(type) {
	case *floorSide:
		w = one.world
		one.program.Close(ctx)
	case *productSide:
		w = one.world
		require.NoError(t, one.stop())
	}
	defer w.close()
	w.leave()
	_, err := s.countLast(ctx, w.url)
	require.NoError(t, err)
	conn, err := w.connect(ctx)
	require.NoError(t, err)
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `
		SELECT regexp_replace(relname, '_p?\d+.*$', ''), sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del)
		FROM pg_stat_user_tables
		WHERE relname ~ '^(execution|outbox|queue_stats|worker_load|admission_)' AND n_tup_ins + n_tup_upd + n_tup_del > 0
		GROUP BY 1`)
	require.NoError(t, err)
	written := map[string][3]int{}
	var name string
	var n [3]int
	_, err = pgx.ForEachRow(rows, []any{&name, &n[0], &n[1], &n[2]}, func() error { written[name] = n; return nil })
	require.NoError(t, err)
	return written
}

func TestASmallPair(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	list, err := s.pairs(testkit.Context(t), measure.Servers{
		Schema: schema, AMQPURL: testkit.VHost(t), ManagementURL: testkit.ManagementURL(t),
	}, []Load{
		{What: "two together", Together: 2, Executions: 8},
		{What: "through a broker", Together: 1, Every: 10 * time.Millisecond, System: true, Executions: 5},
	}, 1)
	require.NoError(t, err)
	require.Equal(t, []float64{5, 2}, []float64{2 * list[0].Floor.Trips, 2 * list[0].Floor.Commits},
		"five round trips, two of them with a commit")
	for _, p := range list {
		for _, c := range []Cost{p.Floor, p.Product} {
			require.Positive(t, c.WallP50)
			require.Positive(t, c.WALBytes)
			require.Equal(t, !p.Load.System, c.Statements > 0 && c.Trips > 0, "the whole system's are not counted")
		}
	}
	var text bytes.Buffer
	PrintPairs(&text, list)
	require.Contains(t, text.String(), "two together\tfloor\t")
}
