package screen

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
)

var start = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

func TestARateNeedsTwoSamples(t *testing.T) {
	t.Parallel()
	h := NewHistory()
	_, ok := h.PerMinute("done")
	require.False(t, ok)
	h.Record("done", start, 100)
	_, ok = h.PerMinute("done")
	require.False(t, ok, "one sample is not a rate of zero")
	h.Record("done", start.Add(2*time.Second), 110)
	rate, ok := h.PerMinute("done")
	require.True(t, ok)
	require.InDelta(t, 300, rate, 0.1)
}

func TestARateCoversOneMinute(t *testing.T) {
	t.Parallel()
	h := NewHistory()
	for i := range 300 {
		value := float64(i)
		if i > 200 {
			value = 200 + float64(i-200)*10
		}
		h.Record("done", start.Add(time.Duration(i)*time.Second), value)
	}
	rate, ok := h.PerMinute("done")
	require.True(t, ok)
	require.InDelta(t, 600, rate, 1)
	change, ok := h.Change("done", time.Minute)
	require.True(t, ok)
	require.InDelta(t, 600, change, 160, "the sample before the minute may lie one bucket back")
}

func TestAResetCounterHasNoRate(t *testing.T) {
	t.Parallel()
	h := NewHistory()
	h.Record("done", start, 1000)
	h.Record("done", start.Add(10*time.Second), 3)
	_, ok := h.PerMinute("done")
	require.False(t, ok)
	for _, v := range h.Rates("done", time.Minute, 4) {
		require.True(t, math.IsNaN(v) || v >= 0, "a reset is not a negative rate")
	}
}

func TestTrendsForgetAfterAnHour(t *testing.T) {
	t.Parallel()
	h := NewHistory()
	h.Record("old", start, 5)
	for i := range 400 {
		h.Record("live", start.Add(time.Duration(i)*15*time.Second), float64(i))
	}
	require.NotContains(t, h.series, "old")
	trend := h.Trend("live", time.Hour, 60)
	require.Len(t, trend, 60)
	require.InDelta(t, 399, trend[59], 0)
	require.Greater(t, trend[59], trend[0])
}

func TestConditionOfAFeed(t *testing.T) {
	t.Parallel()
	d := NewData()
	require.Equal(t, Waiting, d.Condition(FeedOverview, start))
	f := d.Fresh(FeedOverview)
	f.At, f.Every, f.Wanted = start, 30*time.Second, 2*time.Second // a slow source is polled less often
	require.Equal(t, Current, d.Condition(FeedOverview, start.Add(4*time.Second)))
	require.Equal(t, Old, d.Condition(FeedOverview, start.Add(6*time.Second)))
	f.Err = errors.New("refused")
	require.Equal(t, Unreachable, d.Condition(FeedOverview, start))
}

func TestRowsStayWhileTheOperatorReads(t *testing.T) {
	t.Parallel()
	e := &Env{Clock: start, LastKey: start.Add(-time.Second)}
	arrange := func(rows, old []string) []string {
		compare := func(a, b *string) int { return strings.Compare(*a, *b) }
		arranged, keys := Arrange(e, rows, old, compare, func(row *string) string { return *row })
		require.Equal(t, arranged, keys)
		return arranged
	}
	rows := []string{"d", "x", "a", "c"}
	require.Equal(t, []string{"c", "a", "d", "x"}, arrange(rows, []string{"c", "gone", "a"}), "new rows come last")
	require.Equal(t, []string{"a", "c", "d", "x"}, arrange(rows, nil), "the operator asked for the order")
	e.Clock = start.Add(time.Minute)
	require.Equal(t, []string{"a", "c", "d", "x"}, arrange(rows, []string{"c", "a"}))
}

func TestDeadReplicasComeLast(t *testing.T) {
	t.Parallel()
	list := []monitor.Replica{
		{ID: "gone", Age: time.Hour, Problems: []string{"silent for 1h", "loop x is silent"}},
		{ID: "well"},
		{ID: "ill", Problems: []string{"broker away"}},
	}
	var order []string
	for _, r := range worstFirst(list) {
		order = append(order, r.ID)
	}
	require.Equal(t, []string{"ill", "well", "gone"}, order)
}

// Every view scrolls a text in the same way, and never beyond its ends.
func TestTextsAreScrolled(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.Repeat("x\n", 29)+"x", "\n")
	var s Scroller
	for _, step := range []struct {
		action keymap.Action
		want   int
	}{
		{keymap.RowUp, 0},
		{keymap.RowDown, 1},
		{keymap.HalfDown, 6},
		{keymap.HalfUp, 1},
		{keymap.HalfUp, 0},
		{keymap.Bottom, 20},
		{keymap.RowDown, 20},
		{keymap.RowUp, 19},
		{keymap.Top, 0},
	} {
		require.True(t, s.Do(step.action, 10, len(lines)-10))
		shown, at := s.Shown(lines, 10)
		require.Equal(t, step.want, at)
		require.Len(t, shown, 10)
	}
	require.False(t, s.Do(keymap.Open, 10, 20))

	require.True(t, s.Do(keymap.Bottom, 10, 20))
	shown, at := s.Shown(lines[:12], 10)
	require.Equal(t, 2, at, "the end of a text that became shorter")
	require.Len(t, shown, 10)
	require.True(t, s.Do(keymap.RowUp, 10, 2))
	_, at = s.Shown(lines, 10)
	require.Equal(t, 1, at, "the next key continues from there")
}
