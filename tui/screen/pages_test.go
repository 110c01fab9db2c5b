package screen_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/screen"
)

func pages(ids ...int64) *screen.Pages[int64] {
	p := screen.NewPages(func(id *int64) int64 { return *id })
	p.Reload(ids, ids[len(ids)-1])
	return &p
}

func TestAPageReplacesItsRange(t *testing.T) {
	t.Parallel()
	p := pages(90, 80, 70, 60)
	p.Merge([]int64{50, 40}, 60, 40)
	require.Equal(t, []int64{90, 80, 70, 60, 50, 40}, p.Rows())
	require.EqualValues(t, 40, p.Next())
	p.Merge([]int64{80, 75, 70}, 81, 70)
	require.Equal(t, []int64{90, 80, 75, 70, 60, 50, 40}, p.Rows(), "a new row within the range is added")
	require.EqualValues(t, 40, p.Next(), "the rows below did not change")
	p.Merge([]int64{75}, 76, 51)
	require.Equal(t, []int64{90, 80, 75, 50, 40}, p.Rows(), "a missing row is dropped")
	p.Merge([]int64{30}, 40, 0)
	require.Equal(t, []int64{90, 80, 75, 50, 40, 30}, p.Rows())
	require.Zero(t, p.Next())
}

func TestAFirstPageJoinsTheListOrReplacesIt(t *testing.T) {
	t.Parallel()
	p := pages(90, 80, 70)
	p.Merge([]int64{100, 90}, 0, 90)
	require.Equal(t, []int64{100, 90, 80, 70}, p.Rows())
	require.EqualValues(t, 70, p.Next())
	p.Merge([]int64{300, 200}, 0, 200)
	require.Equal(t, []int64{300, 200}, p.Rows(), "the rows between were not read")
	require.EqualValues(t, 200, p.Next())
	p.Merge([]int64{}, 0, 0)
	require.Empty(t, p.Rows())
	p.Reload([]int64{5}, 5)
	p.Forget()
	require.Empty(t, p.Rows())
	require.Zero(t, p.Next())
}

func TestAMissingRowIsReadAgain(t *testing.T) {
	t.Parallel()
	p := pages(90, 80, 70)
	require.Zero(t, p.Before())
	p.Missing(80)
	require.Zero(t, p.Before(), "the list has it")
	p.Missing(75)
	require.EqualValues(t, 76, p.Before())
	p.Merge([]int64{90, 80}, 0, 80)
	require.EqualValues(t, 76, p.Before(), "the page did not reach it")
	p.Merge([]int64{75, 70}, 76, 70)
	require.Zero(t, p.Before())
	require.Equal(t, []int64{90, 80, 75, 70}, p.Rows())
	p.Missing(60)
	p.Merge(nil, 61, 0)
	require.Zero(t, p.Before(), "it no longer matches")
}

func TestKeptPagesAreBounded(t *testing.T) {
	t.Parallel()
	ids := func(from, n int64) (list []int64) {
		for i := range n {
			list = append(list, from-i)
		}
		return list
	}
	p := pages(ids(20_000, 10_000)...)
	p.Merge(ids(10_000, 500), 10_001, 9501)
	require.Len(t, p.Rows(), 10_000)
	require.EqualValues(t, 9501, p.Rows()[9_999], "the operator is below")
	require.EqualValues(t, 9501, p.Next())
	p.Merge(ids(20_100, 700), 0, 19_401)
	require.Len(t, p.Rows(), 10_000)
	require.EqualValues(t, 20_100, p.Rows()[0])
	require.Equal(t, p.Rows()[9_999], p.Next())
}
