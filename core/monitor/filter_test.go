package monitor

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// crowd makes executions of every kind and returns them as a list shows them.
func crowd(t *testing.T, b *testBundle) []Execution {
	t.Helper()
	actions := []testkit.ActionRow{
		testkit.Action(t, b.Store, "demo.echo"), testkit.Action(t, b.Store, "etl.load"),
		testkit.Action(t, b.Store, "etl.unload"),
	}
	workers := []testkit.WorkerRow{testkit.Worker(t, b.Store, "worker-1"), testkit.Worker(t, b.Store, "worker-2")}
	for i := range 60 {
		s := lifecycle.Statuses[i%len(lifecycle.Statuses)]
		e := testkit.Execution(t, b.Store, actions[i%3], monitortest.Status(s),
			monitortest.Aged(time.Duration(60-i)*time.Minute), func(r *testkit.ExecutionRow) {
				r.RetryCount = int32(i % 5)
				r.Result = map[string]string{"message": []string{"expired in its queue", "exit status 1"}[i%2]}
				if i%4 != 0 {
					r.Worker = &workers[i%2].ID
				}
			})

		if i%7 == 0 && i > 0 {
			testkit.Exec(t, b.Store, `update execution set parent = id - 1 where id = $1`, e.ID)
		}
	}
	all, err := b.Executions(t.Context(), ExecutionFilter{}, 0)
	require.NoError(t, err)
	require.Len(t, all.List, 60)
	return all.List
}

// passes is the filter in Go.
func passes(f *ExecutionFilter, x *Execution, now time.Time) bool {
	all := func(list []string, text string) bool {
		return !slices.ContainsFunc(list,
			func(e string) bool { return !regexp.MustCompile("(?i)" + e).MatchString(text) })
	}
	none := func(list []string, text string) bool {
		return !slices.ContainsFunc(list,
			func(e string) bool { return regexp.MustCompile("(?i)" + e).MatchString(text) })
	}
	works := func(list []string) bool {
		return x.WorkerID != nil &&
			(slices.Contains(list, x.WorkerName) || slices.Contains(list, strconv.FormatInt(*x.WorkerID, 10)))
	}
	ok := (len(f.Statuses) == 0 || slices.Contains(f.Statuses, lifecycle.Status(x.Status))) &&
		all(f.Match, x.ActionRef) && none(f.Unmatch, x.ActionRef) && all(f.Reasons, x.Reason) &&
		none(f.NotReasons, x.Reason) &&
		(f.Worker == "" || works([]string{f.Worker})) && (len(f.Workers) == 0 || works(f.Workers)) &&
		!works(f.NotWorkers) &&
		(f.MaxAge == 0 || now.Sub(x.Created) <= f.MaxAge) && (f.MinAge == 0 || now.Sub(x.Created) > f.MinAge) &&
		(f.Parent == 0 || x.Parent != nil && *x.Parent == f.Parent) &&
		(f.Parented == "" || (f.Parented == ParentedAny) == (x.Parent != nil)) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, x.ID)) &&
		x.RetryCount >= f.MinTries && (f.MaxTries == nil || x.RetryCount <= *f.MaxTries)
	return ok || slices.ContainsFunc(f.Or, func(other ExecutionFilter) bool { return passes(&other, x, now) })
}

// anyFilter makes a filter of a few conditions.
func anyFilter(random *rand.Rand, list []Execution, depth int) ExecutionFilter {
	var f ExecutionFilter
	for range random.IntN(3) {
		switch random.IntN(12) {
		case 0:
			f.Statuses = []lifecycle.Status{lifecycle.Statuses[random.IntN(len(lifecycle.Statuses))],
				lifecycle.StatusFailed}
		case 1:
			f.Match = append(f.Match, []string{"^etl", "load$", "demo|un"}[random.IntN(3)])
		case 2:
			f.Unmatch = append(f.Unmatch, []string{"^etl", "UNLOAD"}[random.IntN(2)])
		case 3:
			f.Worker = []string{"worker-1", "nobody"}[random.IntN(2)]
		case 4:
			f.Workers = []string{"worker-2", "nobody"}
		case 5:
			f.NotWorkers = []string{"worker-1", "nobody"}
		case 6:
			f.MaxAge = time.Duration(random.IntN(60))*time.Minute + 30*time.Second
		case 7:
			f.MinAge = time.Duration(random.IntN(60))*time.Minute + 30*time.Second
		case 8:
			f.Parented = []string{ParentedAny, ParentedNone}[random.IntN(2)]
		case 9:
			f.MinTries, f.MaxTries = int64(random.IntN(3)), new(int64(random.IntN(5)))
		case 10:
			f.Reasons, f.NotReasons = []string{"EXPIRED"}, []string{"exit"}
		case 11:
			f.IDs = []int64{list[random.IntN(60)].ID, list[random.IntN(60)].ID}
			f.Parent = list[random.IntN(60)].ID
		}
	}
	for depth > 0 && random.IntN(3) == 0 {
		depth--
		f.Or = append(f.Or, anyFilter(random, list, 0))
	}
	return f
}

func TestAFilteredListEqualsAFilterOfEveryRow(t *testing.T) {
	b := setup(t, nil)
	rows := crowd(t, b)
	random := rand.New(rand.NewPCG(7, 7))
	for range 150 {
		f := anyFilter(random, rows, 3)
		var want, got []int64
		first, err := b.Executions(t.Context(), f, 0)
		require.NoError(t, err)
		for i := range rows {
			if passes(&f, &rows[i], first.At) {
				want = append(want, rows[i].ID)
			}
		}
		f.Limit, f.Oldest = 1+random.IntN(9), random.IntN(2) == 0
		if f.Oldest {
			slices.Reverse(want)
		}
		for cursor, pages := int64(0), 0; ; pages++ {
			page, err := b.Executions(t.Context(), f, cursor)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.List), f.Limit)
			for _, x := range page.List {
				got = append(got, x.ID)
			}
			require.Less(t, pages, 100)
			if cursor = page.Next; cursor == 0 {
				break
			}
		}
		require.Equal(t, want, got, "%+v", f)
	}
}

func TestABoundedSearchContinuesBelow(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	testkit.Exec(t, b.Store, `alter table execution disable trigger user`)
	testkit.Exec(t, b.Store, `insert into execution (action, action_ref, status, retry_count, finished_at)
		select $1, 'demo.sleep', 'completed', case when g % 9000 = 0 then 3 else 0 end, now() from generate_series(1,
			27000) g`, action.ID)
	for name, f := range map[string]ExecutionFilter{
		"all": {MinTries: 2}, "ended": {MinTries: 2, Statuses: []lifecycle.Status{lifecycle.StatusCompleted}},
		"either":        {MinTries: 2, Or: []ExecutionFilter{{IDs: []int64{1 << 40}}}},
		"oldest":        {MinTries: 2, Oldest: true},
		"ended, oldest": {MinTries: 2, Oldest: true, Statuses: []lifecycle.Status{lifecycle.StatusCompleted}},
	} {
		var found int
		bounded := false
		cursor, pages := int64(0), 0
		for ; pages < 30; pages++ {
			page, err := b.Executions(t.Context(), f, cursor)
			require.NoError(t, err)
			bounded = bounded || page.Bounded
			found += len(page.List)
			if cursor = page.Next; cursor == 0 {
				break
			}
		}
		require.Equal(t, 3, found, name)
		require.True(t, bounded, "%s says that a page is not all", name)
		require.Greater(t, pages, 1, name)
	}
}
