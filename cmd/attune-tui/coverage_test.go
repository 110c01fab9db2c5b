package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

// menusOfOne are the menus of the row under the cursor, menusOfMany those of marked rows.
func menusOfOne() []act.Menu {
	return []act.Menu{
		act.ForExecution(&monitor.Execution{}), act.ForTask(&monitor.WorkflowTask{}, &monitor.WorkflowChild{}),
		act.ForQueue(&monitor.Queue{}),
		act.ForWorker(&monitor.Worker{}, time.Time{}, 0), act.ForWorkflow(&monitor.Workflow{}),
		act.ForInquiry(&monitor.InquiryDetail{}, &inquiry.AnswerForm{}),
		act.ForDeadLetter(&monitor.LedgerEntry{}, 0),
	}
}

func menusOfMany() []act.Menu {
	return []act.Menu{
		act.ForMarked("execution", nil), act.ForMarked("queue", nil), act.ForMarked("worker", nil),
		act.ForMarked("workflow", nil), act.ForMarked("dead letter", nil),
		act.ForMarkedInquiries(nil, act.ForInquiry(&monitor.InquiryDetail{}, &inquiry.AnswerForm{})),
	}
}

// itemOf is the menu item of an action.
func (x *terminal) itemOf(kind act.Kind, menus []act.Menu) act.Item {
	x.t.Helper()
	for _, menu := range menus {
		for _, item := range menu.Items {
			if item.Kind == kind {
				return item
			}
		}
	}
	require.Fail(x.t, "no menu has "+string(kind))
	return act.Item{}
}

// plans chooses an action from the menu of the row under the cursor, and waits for its dialog. The menu refuses an
// action while the screen shows an older state of the row.
func (x *terminal) plans(kind act.Kind, title string) {
	x.t.Helper()
	x.choose(x.itemOf(kind, menusOfOne()), "─ "+title)
}

// plansMarked does the same with the rows that are marked.
func (x *terminal) plansMarked(kind act.Kind, title string) {
	x.t.Helper()
	x.choose(x.itemOf(kind, menusOfMany()), "─ "+title)
}

// choose chooses an item of the menu until its dialog shows a text.
func (x *terminal) choose(item act.Item, shown string) {
	x.t.Helper()
	testkit.Eventually(x.t, func() bool {
		x.press("A", item.Key)
		planned := x.either(shown, "▲ "+item.Label+": ")
		if !planned {
			x.press("Escape")
			x.hides("▲ " + item.Label + ": ")
		}
		return planned
	}, wait, "%s is shown", shown)
}

// asks presses the key of an action and waits for its dialog.
func (x *terminal) asks(action keymap.Action, title string) {
	x.t.Helper()
	binding, ok := keymap.BuiltIn.Of(action)
	require.True(x.t, ok, action)
	x.press(binding.Keys[0])
	x.shows("─ " + title)
}

// buttons is part of the line with the two buttons. Before it is on the screen the plan is not ready, and a key would
// be lost.
const buttons = "leave it ]"

// runs confirms a plan and waits for its receipt.
func (x *terminal) runs(title string) {
	x.t.Helper()
	x.shows(buttons)
	x.press("y")
	x.reports(title)
}

// types confirms a plan that asks for a word, and waits for its receipt.
func (x *terminal) types(word, title string) {
	x.t.Helper()
	x.shows("type " + word + " to confirm")
	x.call("send-keys", "-l", word)
	x.press("Enter")
	x.reports(title)
}

// reports waits for a receipt and closes it.
func (x *terminal) reports(title string) {
	x.t.Helper()
	x.shows("✓ " + title)
	x.press("Escape")
	x.hides("✓ " + title)
}

// TestEveryActionHasATestByKeys requires a test in a terminal for every menu item, of one row and of marked rows, and
// for every key with an action of its own.
func TestEveryActionHasATestByKeys(t *testing.T) {
	t.Parallel()
	names, actions := constants(t, "../../core/act/*.go", "Kind"), constants(t, "../../tui/keymap/*.go", "Action")
	one, many, keys := asked(t, "plans"), asked(t, "plansMarked"), asked(t, "asks")
	byKey := map[string]string{ // by the action of their own key
		"Requeue": "RequeueDeadLetter", "Discard": "DiscardDeadLetter", "Purge": "DiscardAllDeadLetters", "MoveTo": "SendDeadLetters",
		"Undo": "UndoDeadLetters",
		"Take": "TakeDeadLetters",
	}
	for _, action := range keys {
		one = append(one, byKey[action])
	}
	reached := map[string]bool{}
	for _, menu := range menusOfOne() {
		for _, item := range menu.Items {
			reached[string(item.Kind)] = true
			require.Contains(t, one, names[string(item.Kind)], "%s of one row is in no test by keys", item.Kind)
		}
	}
	for _, menu := range menusOfMany() {
		for _, item := range menu.Items {
			require.Contains(t, many, names[string(item.Kind)], "%s of marked rows is in no test by keys", item.Kind)
		}
	}
	reached[string(act.PutBackExecutions)] = true                                  // only by the key of the undo
	reached[string(act.EnableRule)], reached[string(act.DisableRule)] = true, true // no list has rows of rules
	for kind := range names {
		require.True(t, reached[kind], "%s is in no menu that this test knows", kind)
	}
	for _, b := range keymap.Table {
		if b.Acts && b.Action != keymap.Act { // A opens the menu of all others
			require.Contains(t, keys, actions[string(b.Action)], "the key %s is in no test by keys", b.Show)
		}
	}
}

// constants reads the names of a type's constants from the source, by value.
func constants(t *testing.T, pattern, typ string) map[string]string {
	t.Helper()
	names := map[string]string{}
	inspect(t, pattern, func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return
		}
		of, typed := spec.Type.(*ast.Ident)
		if value, literal := spec.Values[0].(*ast.BasicLit); typed && literal && of.Name == typ {
			names[strings.Trim(value.Value, `"`)] = spec.Names[0].Name
		}
	})
	require.NotEmpty(t, names)
	return names
}

// asked lists the arguments that the tests of this package pass to one of the functions above, also as the kind of a
// row in a table.
func asked(t *testing.T, function string) []string {
	t.Helper()
	var names []string
	take := func(e ast.Expr) {
		if what, named := e.(*ast.SelectorExpr); named {
			names = append(names, what.Sel.Name)
		}
	}
	inspect(t, "*_test.go", func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == function && len(n.Args) > 0 {
				take(n.Args[0])
			}
		case *ast.KeyValueExpr:
			if field, ok := n.Key.(*ast.Ident); ok && field.Name == "kind" && function == "plansMarked" {
				take(n.Value)
			}
		}
	})
	return names
}

func inspect(t *testing.T, pattern string, look func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			look(n)
			return true
		})
	}
}
