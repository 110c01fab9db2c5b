package app

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
)

// withExports is a dashboard that acts, copies and writes files.
func withExports(t *testing.T, acts *fakeActs) (*bundle, *clip, string) {
	t.Helper()
	b, c, folder := carrying(t, sample(), func(o *Options) { o.Acts = acts })
	b.press("2", "j")
	return b, c, folder
}

func TestAPlanIsExportedAndCopiedBeforeItIsRun(t *testing.T) {
	acts := &fakeActs{}
	b, c, folder := withExports(t, acts)
	b.press("A", "p", "tab")
	b.typed("it's late")
	b.press("tab")
	require.Equal(t, keymap.InConfirm, b.stage())
	b.press("c")
	require.Equal(t, `attune-executor queue pause core.http_request --reason 'it'\''s late'`, c.last())
	b.press("e")
	require.Contains(t, b.messages(), "Written: "+folder)
	files, err := filepath.Glob(filepath.Join(folder, "prod-eu-plan-queue.pause-*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	var doc plannedDoc
	require.NoError(t, json.Unmarshal([]byte(read(t, files[0])), &doc))
	require.Equal(t, act.PauseQueue, doc.Kind)
	require.NotEmpty(t, doc.Lines)
	require.Len(t, doc.Commands, 1)
	require.Zero(t, acts.runs, "nothing was done")
	b.press("y")
	require.Equal(t, 1, acts.runs, "and it can be run still")
}

func TestAPlanForManyNamesEachOfThem(t *testing.T) {
	b, c, folder := withExports(t, &fakeActs{})
	b.press("3", " ", " ", "R", "c")
	require.Equal(t, "attune-executor execution retry 884301 884300", c.last())
	b.press("e")
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	lines := strings.Split(strings.TrimSpace(read(t, files[0])), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[2], "884300")
}

// A plan is exported with the full messages of its dead letters, without secrets. Missing rows are counted.
func TestAPlanOverDeadLettersIsExportedWithTheirMessages(t *testing.T) {
	source := sample()
	source.ledger = []monitor.LedgerEntry{{ID: 12, Reason: "poison"}, {ID: 11, Reason: "expired"}}
	b, _, folder := carrying(t, source, func(o *Options) { o.Acts = &fakeActs{deadLetters: []int64{12, 11, 10}} })
	b.press("2", "j", "A", "p", "tab", "tab", "e")
	require.Contains(t, b.messages(), "Written: "+folder)
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	lines := strings.Split(strings.TrimSpace(read(t, files[0])), "\n")
	require.Len(t, lines, 3, "the plan and two dead letters")
	for i, id := range []int64{12, 11} {
		var deadLetter monitor.ExportedDeadLetter
		require.NoError(t, json.Unmarshal([]byte(lines[i+1]), &deadLetter))
		require.Equal(t, id, deadLetter.ID)
		require.Contains(t, *deadLetter.Body, `"attempt"`)
		require.NotContains(t, *deadLetter.Body, "hunter2")
	}
	b.press("esc", "esc", "L", "j")
	require.Contains(t, b.View(), "1 of the marked rows are gone")
}

func TestAPlanIsExportedWithoutItsSecrets(t *testing.T) {
	b, c, folder := withExports(t, &fakeActs{})
	b.press("A", "p")
	onTop[*question](b).item.Fields = []act.Field{{Name: "pin", Secret: true}}
	b.operation().Request.Values = map[string]string{"pin": "1234"}
	b.operation().Request.Kind, b.operation().Request.Targets = act.SendDeadLetters, []act.Target{{ID: 884301}}
	b.press("c")
	require.Empty(t, c.texts)
	require.Contains(t, b.messages(), "No command of attune-executor does this")
	b.press("e")
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	text := read(t, files[0])
	require.NotContains(t, text, "1234")
	require.Contains(t, text, jsonview.Masked)
	require.Contains(t, text, `"id":884301`)
	require.Equal(t, "1234", b.operation().Request.Values["pin"], "the plan itself has it")
}

func TestAPlanIsNotCopiedWithoutAClipboard(t *testing.T) {
	b, _, _ := carrying(t, sample(), func(o *Options) { o.Acts, o.Clipboard, o.Exports = &fakeActs{}, nil, "" })
	b.press("2", "j", "A", "p", "c")
	require.Contains(t, b.messages(), "no terminal to ask")
	b.press("e")
	require.Contains(t, b.messages(), "Not written: no folder is known")
	require.Equal(t, keymap.InConfirm, b.stage())
}
