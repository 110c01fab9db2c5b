package app

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
)

// rare answers a search among 120,000 executions, of which three match: by 5,000 a page.
func rare(ids ...int64) func(monitor.ExecutionFilter, int64) *monitor.Executions {
	return func(filter monitor.ExecutionFilter, cursor int64) *monitor.Executions {
		page := &monitor.Executions{Reading: monitor.Reading{At: frozen}, Filter: filter, From: cursor, Looked: 5_000}
		if cursor == 0 {
			cursor = 120_001
		}
		page.Next = max(cursor-5_000, 0)
		if page.Next <= 1 {
			page.Next = 0
		}
		page.Bounded, page.Left = page.Next != 0, max(page.Next-1, 0)
		for _, id := range ids {
			if id < cursor && id >= page.Next {
				page.List = append(page.List,
					monitor.Execution{ID: id, ActionRef: "shop.bill", Status: "completed", Created: frozen})
			}
		}
		return page
	}
}

func TestASearchThatFindsNothingGoesOn(t *testing.T) {
	source := sample()
	source.search = rare(41_000, 2)
	b := started(t, source, 140, 30)
	b.press("3")
	b.filtered("param.note:*XK-77*")
	require.Contains(t, b.View(), "No match yet: searched the newest 5\u2009000 of about 120\u2009000: G goes on")
	require.NotContains(t, b.View(), "No execution matches")
	b.press("G")
	require.Contains(t, b.View(), "41000", "it goes on until it finds something")
	require.Contains(t, b.View(), "searched the newest 80\u2009000 of about 120\u2009000: G goes on")
	b.press("r")
	require.Contains(t, b.View(), "41000", "a poll of the newest keeps it")
	require.Contains(t, b.View(), "searched the newest 80\u2009000 of about 120\u2009000: G goes on")
	b.press("G")
	require.Equal(t, 2, b.executions.Len())
	require.NotContains(t, b.View(), "goes on")
	source.search = rare()
	b.filter("param.note:nothing")
	b.press("G")
	require.Contains(t, b.View(), "No execution matches /param.note:nothing", "all were searched")
}

func TestASearchIsStopped(t *testing.T) {
	source := sample()
	pages := 0
	var b *bundle
	source.search = func(filter monitor.ExecutionFilter, cursor int64) *monitor.Executions {
		if cursor != 0 && len(filter.Params) > 0 {
			if pages++; pages == 3 {
				b.executions.Leave() // as esc does
			}
		}
		return rare()(filter, cursor)
	}
	b = started(t, source, 140, 30)
	b.press("3")
	b.filtered("param.note:*XK-77*")
	b.press("G")
	require.Equal(t, 3, pages)
	require.Contains(t, b.View(), "No match yet: searched the newest 20\u2009000 of about 120\u2009000: G goes on")
	require.Equal(t, "param.note:*XK-77*", b.executions.Filter())

	held := b.hold("*")
	require.Contains(t, b.messages(), "marking all that match · esc stops")
	b.press("esc")
	require.Equal(t, "param.note:*XK-77*", b.executions.Filter(), "esc stops the search only")
	b.answers(held)
	require.Contains(t, b.messages(), "0 are marked; the search was stopped, more may match.")
	source.search = rare(41_000, 2)
	b.press("*")
	require.Equal(t, []string{"41000", "2"}, b.executions.Table().Marked(), "also what the list has not read")
}

func TestWIsAboutTheRow(t *testing.T) {
	source := sample()
	source.detail.Status, source.detail.Why = "scheduling", []string{
		"Execution 1 is being handed to a worker, for 26m.", "No replica of the engine is alive.",
	}
	for i := range source.list {
		source.list[i].Status = "scheduling"
	}
	b := started(t, source, 140, 30)
	b.press("3", "W")
	require.Equal(t, keymap.InExecution, b.view)
	require.Contains(t, b.View(), "No replica of the engine is alive.")
	require.NotContains(t, b.View(), "TIMELINE", "the reasons have the page")
	b.press("esc", "esc", "W")
	require.NotContains(t, b.View(), "TIMELINE", "again")
	b.press("esc", "esc")
	source.list[0].Status = "completed"
	b.press("r", "W")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Contains(t, b.messages(), "It waits for nothing: it is completed.")
}

// A page shows a part of a large result, and says of how much. Its export has all of it.
func TestALargeResultIsExportedWhole(t *testing.T) {
	source := sample()
	whole := `{"stdout": "` + strings.Repeat("x", 822<<10) + `"}`
	source.detail.Result, source.detail.ResultBytes = whole[:64<<10], int64(len(whole))
	full := *source.detail
	full.Result, full.ResultBytes = whole, 0
	source.whole = &full
	b, _, folder := carrying(t, source)
	b.press("3", "enter")
	require.Contains(t, b.View(), "64 of 823 KiB, e writes all")
	b.press("y")
	require.Contains(t, b.View(), "the loaded parts of its documents, secrets masked: e writes all")
	b.press("esc", "e", "j")
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	var row struct{ Result json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(read(t, files[0])), &row))
	require.JSONEq(t, whole, string(row.Result))
}
