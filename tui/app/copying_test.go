package app

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// clip is a clipboard in memory.
type clip struct {
	texts []string
	err   error
}

func (c *clip) put(text string) error {
	c.texts = append(c.texts, text)
	return c.err
}

func (c *clip) last() string { return c.texts[len(c.texts)-1] }

// carrying is a dashboard with a clipboard and a folder for files.
func carrying(t *testing.T, source *fakeSource, change ...func(*Options)) (*bundle, *clip, string) {
	t.Helper()
	c, folder := &clip{}, filepath.Join(t.TempDir(), "exports")
	b := started(t, source, 140, 40, append([]func(*Options){func(o *Options) {
		o.Clipboard, o.Exports, o.Environ = c.put, folder, []string{"HOME=" + filepath.Dir(folder)}
		o.Origin = Origin{
			Database: "postgresql://u:***@db/attune", Schema: "attune",
			Queues: "https://mq:15671/#/queues/%2Fattune/",
		}
	}}, change...)...)
	return b, c, folder
}

func TestARowIsCopiedInEveryForm(t *testing.T) {
	b, c, _ := carrying(t, sample())
	b.press("3", "j")
	for key, want := range map[string]string{
		"i": "884300",
		"l": "https://mq:15671/#/queues/%2Fattune/worker.7.executions",
		"c": "attune-executor execution show 884300",
		"s": `psql "$ATTUNE__DATABASE__URL" -x -c 'SELECT * FROM attune.execution WHERE id = 884300'`,
	} {
		b.press("y")
		require.Equal(t, keymap.InExport, b.stage())
		require.Contains(t, b.View(), "copy of execution 884300")
		b.press(key)
		require.Empty(t, b.stage())
		require.Equal(t, want, c.last(), key)
		require.Contains(t, b.messages(), strconv.Itoa(len(want))+" bytes given to the terminal")
	}
	b.press("y", "j")
	var x monitor.Execution
	require.NoError(t, json.Unmarshal([]byte(c.last()), &x))
	require.Equal(t, int64(884300), x.ID)
	b.press("y", "down", "up", "esc", "y", "q")
	require.Empty(t, b.stage())
	require.Equal(t, keymap.InExecutions, b.view)
	require.Len(t, c.texts, 5, "a closed menu copies nothing")
	c.err = &export.TooLongError{Bytes: 80_000}
	b.press("y", "enter")
	require.Contains(t, b.messages(), "Not copied: 80000 bytes are more than terminals take")
}

func TestACopyIsOfTheRowThatTheMenuWasOpenedFor(t *testing.T) {
	b, c, _ := carrying(t, sample())
	b.press("3", "y")
	b.source.list = b.source.list[3:]
	b.run(b.refresh())
	b.press("i")
	require.Equal(t, "884301", c.last())
}

func TestMarkedRowsAreCopiedTogether(t *testing.T) {
	b, c, _ := carrying(t, sample())
	b.press("3", " ", " ", "y")
	require.Contains(t, b.View(), "copy 2 marked")
	b.press("i")
	require.Equal(t, "884301\n884300", c.last())
	b.press("y", "c")
	require.Equal(t, "attune-executor execution show 884301\nattune-executor execution show 884300", c.last())
	b.press("y", "j")
	require.Equal(t, 2, strings.Count(c.last(), "\n"))
}

func TestEveryViewHasSomethingToTakeOut(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		b, c, folder := carrying(t, sample())
		b.open(view)
		if view == keymap.InLog {
			b.press("esc")
		}
		b.press("y")
		require.Equal(t, keymap.InExport, b.stage(), view)
		b.press("i", "y", "j")
		require.NotEmpty(t, c.texts[0], view)
		require.True(t, json.Valid([]byte(c.last())), view)
		require.NotContains(t, c.last(), "Bearer abc", view)
		b.press("e", "j", "e", "c")
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(t, err)
		require.Len(t, files, 2, view)
		for _, file := range files {
			text := read(t, file)
			require.NotEmpty(t, text)
			require.NotContains(t, text, "Bearer abc", view)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestThePlaceInADocumentIsCopied(t *testing.T) {
	b, c, _ := carrying(t, sample())
	b.open(keymap.InExecution)
	b.press("/")
	b.typed("authorization")
	b.press("enter", "y", "p")
	require.Equal(t, "/headers/authorization", c.last())
	b.press("y", ".")
	require.Equal(t, "‹redacted›", c.last(), "a masked value is not copied")
	b.press("U", "y", ".")
	require.Equal(t, "Bearer abc", c.last(), "a revealed value is copied")
	b.press("y", "j")
	require.NotContains(t, c.last(), "Bearer abc", "the whole document is always masked")
}

func TestARefusedCopyNamesItsReason(t *testing.T) {
	b, c, _ := carrying(t, sample(), func(o *Options) { o.Origin = Origin{} })
	b.press("9", "y", "s")
	require.Contains(t, b.View(), "it is no row of the database")
	b.press("l")
	require.Contains(t, b.View(), "message_queue.management_url is not known here")
	require.Empty(t, c.texts)
	b.press("esc")
	empties, _, _ := carrying(t, empty())
	empties.press("3", "y")
	require.Contains(t, empties.messages(), "nothing under the cursor to copy")
	empties.press("e")
	require.Contains(t, empties.messages(), "nothing here to export")
	none, _, _ := carrying(t, sample(), func(o *Options) { o.Clipboard, o.Exports = nil, "" })
	none.press("3", "y")
	require.Contains(t, none.messages(), "no terminal to ask")
	none.press("e", "j")
	require.Contains(t, none.View(), ":export FILE names one")
}

func TestAnExportHoldsAllThatTheFilterMatches(t *testing.T) {
	source := huge(0)
	for id := int64(5_000); id > 0; id-- {
		source.list = append(source.list,
			monitor.Execution{ID: id, ActionRef: "core.echo", Status: "completed", Created: frozen, Updated: frozen})
	}
	b, _, folder := carrying(t, source)
	b.press("3", "e")
	require.Contains(t, b.View(), "all executions that the filter matches")
	b.press("c")
	file, err := os.Open(filepath.Join(folder, "prod-eu-executions-20261121T021904Z.csv"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 5_001)
	require.Equal(t, []string{"id", "action_ref", "status"}, rows[0][:3])
	require.Equal(t, "5000", rows[1][0])
	require.Equal(t, "1", rows[5_000][0])
	require.Contains(t, b.View(), "5000 rows")
	require.Contains(t, b.View(), "secrets masked")
	require.Equal(t, export.Page, source.filters[len(source.filters)-2].Limit, "by pages of its own")
	b.press("esc", "L")
	require.Contains(t, b.View(), "export of executions")
}

// exported are the lines of an export of the open list.
func (b *bundle) exported(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	b.press(":")
	b.typed("export " + path)
	b.press("enter")
	text, err := os.ReadFile(path)
	require.NoError(t, err, b.messages())
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Lists that are longer than their loaded part are exported completely.
func TestLongListsAreExportedCompletely(t *testing.T) {
	t.Parallel()
	source := longFlows()
	for view, rows := range map[string]int{"6": 902, "8": 800} {
		b, _, _ := carrying(t, source)
		b.press(view)
		list, ok := b.screen().(screen.Listed)
		require.True(t, ok, view)
		require.Less(t, list.Len(), rows, "only a part was read")
		b.press("e")
		require.Contains(t, b.View(), "that the filter matches, at most 100\u2009000")
		b.press("esc")
		require.Len(t, b.exported(t), rows, view)
	}
	b, _, _ := carrying(t, longLedger(1_500))
	b.press("5")
	lines := b.exported(t)
	require.Len(t, lines, 1_500)
	require.Contains(t, lines[0], `"name":"dead letter 1500"`, "waiting ones come first")
	require.Contains(t, lines[500], `"name":"dead letter 1499"`)
	b.press("/")
	b.typed("error:nothing | action:mail.send id:3,6,1497")
	b.press("enter")
	require.Len(t, b.exported(t), 3, "the dashboard applies terms that the database does not have")
	b.press("z", "/")
	b.typed("zzz")
	b.press("enter")
	b.press(":")
	path := filepath.Join(t.TempDir(), "none.jsonl")
	b.typed("export " + path)
	b.press("enter")
	require.NoFileExists(t, path)
}

// An export without rows leaves no file.
func TestAnEmptyExportWritesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.jsonl")
	source := sample()
	h := &export.Set{Name: "x", Rest: export.Executions(source, monitor.ExecutionFilter{IDs: []int64{1}}, nil)}
	receipt, err := h.Write(t.Context(), path, &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "Nothing matches: no file was written.", receipt.Text)
	require.Empty(t, receipt.Next)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, files)
}

// All recorded acts are exported, also ones that the log has not loaded.
func TestTheLogIsExportedCompletely(t *testing.T) {
	source := sample()
	audit := *source.audit
	audit.List = nil
	for i := range int64(500) {
		audit.List = append(audit.List,
			monitor.AuditEntry{ID: 900 - i, At: frozen, Actor: "ann", Action: "queue.pause", Outcome: "done"})
	}
	source.audit = &audit
	b, _, _ := carrying(t, source)
	b.press("L")
	lines := b.exported(t)
	require.GreaterOrEqual(t, len(lines), 500)
	require.Contains(t, lines[len(lines)-1], `"id":401`)
}

func TestAnExportSaysHowFarItIsAndIsStopped(t *testing.T) {
	b, _, folder := carrying(t, sample())
	b.press("3")
	_, cmd := b.Update(keyMsg("e"))
	b.run(cmd)
	_, write := b.Update(keyMsg("j"))
	b.exportUnderWay().Progress.Set(4_200, 0)
	require.Contains(t, b.messages(), "writing export of executions: 4")
	require.False(t, quits(t, b, "q"), "leaving asks first")
	b.press("3", "e", "x")
	b.run(write)
	require.Nil(t, b.exportUnderWay())
	require.Contains(t, b.View(), "nothing was written")
	require.NoFileExists(t, filepath.Join(folder, "prod-eu-executions-20261121T021904Z.jsonl"))
}

func TestAFailedExportKeepsItsRows(t *testing.T) {
	b, _, _ := carrying(t, sample())
	path := filepath.Join(t.TempDir(), "x.jsonl")
	h := &export.Set{Name: "x", Values: []any{1, 2}, Rest: export.Executions(b.source, monitor.ExecutionFilter{}, nil)}
	b.source.fail = map[screen.Feed]error{screen.FeedExecutions: errors.New("connection refused")}
	_, err := h.Write(t.Context(), path, &act.Progress{})
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "the 2 rows until then are in "+path+".part")
	require.Equal(t, "1\n2\n", read(t, path+".part"))
	ctx, cancel := context.WithCancel(t.Context())
	h.Rest = func(_ context.Context, take func([]export.Row, bool) (bool, error)) (bool, error) {
		cancel()
		_, err := take([]export.Row{{Key: "3", Value: 3}}, true)
		return false, err
	}
	receipt, err := h.Write(ctx, path+"l", &act.Progress{})
	require.NoError(t, err)
	require.True(t, receipt.Partly)
	require.Equal(t, path+"l.part", receipt.Next)
	require.NoFileExists(t, path)
}

func TestExportNamesItsFileAndWritesOverNothing(t *testing.T) {
	b, _, folder := carrying(t, sample())
	path := filepath.Join(filepath.Dir(folder), "mine.csv")
	b.press("2", ":")
	b.typed("export ~/mine.csv")
	b.press("enter")
	first := read(t, path)
	require.Contains(t, first, "core.http_request")
	require.True(t, strings.HasPrefix(first, "id,"), first[:20])
	b.press("esc", ":")
	b.typed("export " + path)
	b.press("enter")
	require.Contains(t, b.View(), "nothing is written over it")
	require.Equal(t, first, read(t, path))
	b.press("esc", " ", " ", ":")
	b.typed("export " + path + "2")
	b.press("enter")
	require.Equal(t, 2, strings.Count(read(t, path+"2"), "\n"), "marked rows only, as JSON")
}

func TestGoldenFramesOfTakingOut(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		for name, key := range map[string]string{"yank": "y", "export": "e"} {
			t.Run(fmt.Sprintf("%s_%dx%d", name, size[0], size[1]), func(t *testing.T) {
				t.Parallel()
				b, _, _ := carrying(t, sample(),
					func(o *Options) { o.Exports = "/home/ada/.local/state/attune/exports" })
				b.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				b.open(keymap.InExecution)
				b.press(key)
				requireGolden(t, fmt.Sprintf("%s_%dx%d", name, size[0], size[1]), b.View())
			})
		}
	}
}

func TestTheMenusOfTakingOutFitEveryWindow(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		for _, source := range []func() *fakeSource{sample, hostile} {
			b, _, _ := carrying(t, source())
			b.open(view)
			for _, key := range []string{"y", "e"} {
				b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
				b.press("esc", key)
				for _, w := range testkit.Some(t, []int{20, 60, 80, 141}, 2) {
					for _, h := range []int{6, 15, 40} {
						b.send(tea.WindowSizeMsg{Width: w, Height: h})
						require.False(t, strings.ContainsAny(requireFits(t, b, w, h), "\a\r\u202e\u200b"), view)
					}
				}
			}
		}
	}
}

func TestMarksThatAreNotListedAreTakenOutToo(t *testing.T) {
	b, c, folder := carrying(t, huge(1_200))
	b.press("3", "*")
	n := b.table().Marks()
	require.Equal(t, len(b.source.list), n)
	require.Less(t, b.executions.Len(), n)
	b.press("y", "j")
	require.Contains(t, b.View(), "are not loaded: e writes all to a file")
	b.press("i")
	require.Equal(t, n, strings.Count(c.last(), "\n")+1)
	b.press("e", "j")
	files, err := filepath.Glob(filepath.Join(folder, "*executions-marked*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, n, strings.Count(read(t, files[0]), "\n"))

	gone := len(b.source.list) - 5
	b.source.list = b.source.list[:gone]
	b.press("esc", ":")
	b.typed("export " + folder + "/left.jsonl")
	b.press("enter")
	require.Equal(t, gone, strings.Count(read(t, folder+"/left.jsonl"), "\n"))
	require.Contains(t, b.View(), "5 of the marked rows are gone")
}
