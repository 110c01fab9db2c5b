package list_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// pump is a row of the list under test.
type pump struct {
	name  string
	hours int64
	ill   bool
	seen  *time.Time
}

func named(p *pump) string { return p.name }
func hours(p *pump) int64  { return p.hours }

// pumps is a list of the rows that the function returns.
func pumps(t *testing.T, rows func() []pump, read ...bool) *list.List[pump] {
	t.Helper()
	look, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	env := &screen.Env{Theme: look, Data: screen.NewData(), Now: time.Unix(1_000_000, 0), Width: 80, Height: 24}
	return list.New(env, list.Spec[pump]{
		View: keymap.InQueues, Title: "Pumps", Singular: "pump", Plural: "pumps", Feed: screen.FeedQueues,
		Loaded: func() bool { return len(read) == 0 || read[0] }, Rows: rows,
		Fields: []list.Field[pump]{
			list.Text("PUMP", 8, named).Grow().Sort(2, "name").Term("pump", "its name").
				Also(func(p *pump) string { return "no." + p.name }),
			list.Number("HOURS", 6, hours).Term("hours", "how long it ran").Sort(1, "hours"),
			list.Age("", 0, func(p *pump) *time.Time { return p.seen }).Term("age", "when it was seen").Sort(3, "seen"),
		},
		SearchTexts: func(p *pump) []string { return []string{p.name} }, Key: named,
		IsProblem: func(p *pump) bool { return p.ill },
		EmptyText: []string{" No pump runs."},
	})
}

func three() []pump {
	return []pump{
		{name: "b", hours: 5, seen: new(time.Unix(999_000, 0))},
		{name: "a", hours: 7, ill: true},
		{name: "c", hours: 5, ill: true, seen: new(time.Unix(500_000, 0))},
	}
}

func names(l *list.List[pump]) (names string) {
	for _, p := range l.VisibleRows() {
		names += p.name
	}
	return names
}

func TestAListSortsByItsFields(t *testing.T) {
	t.Parallel()
	l := pumps(t, three)
	l.Rebuild(true)
	require.Equal(t, []string{"hours", "name", "seen"}, l.SortKeys(), "in the order of their digits")
	require.Equal(t, "abc", names(l), "what an order leaves alike stays as it was read")
	for _, c := range []struct {
		order screen.Order
		names string
	}{
		{screen.Order{Column: 1}, "abc"},
		{screen.Order{Column: 1, Reverse: true}, "cba"},
		{screen.Order{Column: 2}, "cba"},
		{screen.Order{Column: 3}, "cba"},
		{screen.Order{Column: -1}, "cba"},
	} {
		l.SetOrder(c.order)
		require.Equal(t, c.names, names(l), "%+v", c.order)
	}
	_, right := l.Title()
	require.Equal(t, "sort seen↓ · 3", right)
}

func TestAListFiltersByItsFields(t *testing.T) {
	t.Parallel()
	l := pumps(t, three)
	l.Rebuild(true)
	asked := l.Asked()
	for text, want := range map[string]string{
		"": "abc", "hours>5": "a", "pump:b": "b", "pump:no.c": "c", "b": "b", "!b": "ac", "age<1h": "b", "pump:x": "",
	} {
		require.NoError(t, l.SetFilter(text), text)
		require.Equal(t, want, names(l), text)
	}
	require.Greater(t, l.Asked(), asked)
	require.NoError(t, l.SetFilter("pump:b"))
	require.Error(t, l.SetFilter("colour:red"))
	require.Equal(t, "pump:b", l.Filter(), "the one before stays")
	require.Equal(t, []string{"b", "a", "c"}, l.Known("pump"), "without values that are only compared")
	require.Empty(t, l.Known("hours"))
}

func TestAListShowsProblemsOnly(t *testing.T) {
	t.Parallel()
	l := pumps(t, three)
	l.Rebuild(true)
	require.True(t, l.Do(keymap.Problems).Handled)
	require.Equal(t, "ac", names(l))
	require.NoError(t, l.SetFilter("b"))
	require.Equal(t, []string{
		"", " No pump with a problem matches /b (z shows all).",
		" esc clears the filter; terms: pump:…  hours>2  age>10m  text  !not  a | b",
	}, l.Render(80, 20), "the pump b is well")
	l.Do(keymap.Problems)
	require.Equal(t, "b", names(l))
}

func TestAListHasTextsWithoutRows(t *testing.T) {
	t.Parallel()
	require.Contains(t, pumps(t, three, false).Render(80, 20)[1], "Reading the pumps")
	var read []pump
	l := pumps(t, func() []pump { return read })
	l.Changed(screen.FeedQueues)
	require.Equal(t, []string{"", " No pump runs."}, l.Render(80, 20))
	l.Changed(screen.FeedAlerts)
	read = three()
	l.Changed(screen.FeedWorkers)
	require.Zero(t, l.Len(), "other feeds are not its own")
	l.Changed(screen.FeedQueues)
	require.Equal(t, 3, l.Len())
	_, can := l.Acts()
	require.False(t, can)
	require.False(t, l.Actable())
}

func TestAFrameMakesNoRows(t *testing.T) {
	t.Parallel()
	made := 0
	l := pumps(t, func() []pump { made++; return three() })
	l.Rebuild(true)
	l.Render(80, 20)
	l.Title()
	require.Equal(t, 1, made)
}

func TestAnOrderIsWrittenAndReadBack(t *testing.T) {
	t.Parallel()
	l := pumps(t, three)
	require.Empty(t, screen.OrderText(l), "what a view begins with needs no words")
	for _, want := range []screen.Order{{}, {Reverse: true}, {Column: 1}, {Column: 2, Reverse: true}} {
		l.SetOrder(want)
		got, ok := screen.ReadOrder(l, screen.OrderText(l))
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	require.Equal(t, "seen", l.SortKey())
	got, ok := screen.ReadOrder(l, " Name reversed ")
	require.True(t, ok)
	require.Equal(t, screen.Order{Column: 1, Reverse: true}, got)
	_, ok = screen.ReadOrder(l, "depth")
	require.False(t, ok)
}
