package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/execution"
	"github.com/attune-go/attune/tui/screen/operations"
	"github.com/attune-go/attune/tui/widget"
)

// exportTimeout ends an export that hangs.
const exportTimeout = 10 * time.Minute

// kindExport is the kind of exports in the log of operations.
const kindExport act.Kind = "export"

// exported returns the contents of an export: the marked rows, or else all matching rows, or else the thing that is
// shown.
func (m *Model) exported() (*export.Set, bool) {
	if rows, missing := m.markedThings(); len(rows)+len(missing) > 0 {
		return m.markedSet(rows, missing), true
	}
	list, listed := m.screen().(screen.Listed)
	if s, ok := m.screen().(screen.Shows); ok && (!listed || m.table() != nil) {
		if thing, ok := s.Shows(); ok {
			set := &export.Set{Name: thing.Name, What: thing.Name, Values: []any{thing.Value}}
			if thing.Cut {
				set.Values, set.Rest = nil, m.whole()
			}
			return set, true
		}
	}
	if !listed || list.Len() == 0 {
		return nil, false
	}
	return m.listSet(list), true
}

// whole reads the shown thing with whole documents.
func (m *Model) whole() export.Rows {
	if m.view == keymap.InWorkflows {
		ask := m.workflows.Ask()
		ask.Whole = true
		return export.One(bind(m.source.WorkflowTree, ask), func(d *monitor.WorkflowDetail) any { return d })
	}
	return export.One(bind(m.source.WholeExecution, m.execution.ID()),
		func(d *monitor.ExecutionDetail) any { return execution.Document(d) })
}

// listSet contains all rows that match the filter. Rows that are not loaded come from the database.
func (m *Model) listSet(list screen.Listed) *export.Set {
	set, beyond := &export.Set{Name: string(m.view)}, ""
	if cut, ok := list.(screen.Cut); ok {
		beyond = cut.Beyond()
	}
	if rest := m.all(nil); rest != nil && (beyond != "" || m.view == keymap.InExecutions) {
		rows := string(m.view)
		if m.view == keymap.InDeadLetters {
			rows = "dead letters"
		}
		set.Rest, set.What = rest, "all "+rows+" that the filter matches, at most "+m.env.Num(export.Most)
		return set
	}
	things := make([]screen.Thing, list.Len())
	for i := range things {
		things[i] = list.Thing(i)
	}
	set.Values = valuesOf(things)
	if m.view == keymap.InLog && m.operations.Older() > 0 {
		set.Rest = export.Acts(m.source, m.operations.Older(), m.operations.Row())
		set.What = "all acts that are recorded, at most " + m.env.Num(export.Most)
		return set
	}
	set.What, set.Note = "the "+m.env.Plural(int64(len(set.Values)), "row", "rows")+" of the list", beyond
	return set
}

// markedSet contains the marked rows. Rows that are not loaded come from the database.
func (m *Model) markedSet(rows []screen.Thing, missing []string) *export.Set {
	n := len(rows) + len(missing)
	set := &export.Set{
		Name: string(m.view) + "-marked", What: m.env.Num(int64(n)) + " marked rows", Values: valuesOf(rows),
	}
	if len(missing) == 0 {
		return set
	}
	if set.Rest = m.byKeys(missing); set.Rest != nil {
		set.Wanted = n
	} else {
		set.Note = m.env.Num(int64(len(missing))) + " marked rows are no longer in the list"
	}
	return set
}

func valuesOf(things []screen.Thing) []any {
	values := make([]any, 0, len(things))
	for i := range things {
		if acts, several := things[i].Value.(operations.Bundle); several {
			for j := range acts {
				values = append(values, acts[j])
			}
			continue
		}
		values = append(values, things[i].Value)
	}
	return values
}

// exportTo writes the open view to a file. The name may begin with ~/; an empty one means the default name.
func (m *Model) exportTo(name string) (tea.Cmd, error) {
	set, ok := m.exported()
	if !ok {
		return nil, errors.New("there is nothing here to export")
	}
	if name == "" {
		path, problem := m.exportPath(set.Name, ".jsonl")
		if problem != "" {
			return nil, errors.New(problem)
		}
		return m.export(set, path), nil
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		for _, entry := range m.opts.Environ {
			if home, ok := strings.CutPrefix(entry, "HOME="); ok {
				name = filepath.Join(home, rest)
			}
		}
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("%q names no file: %w", name, err)
	}
	return m.export(set, path), nil
}

// openExport opens the menu of file formats.
func (m *Model) openExport() {
	if m.tooSmall() {
		return
	}
	var offers []offer
	set, ok := m.exported()
	title := "export"
	if ok {
		title = "export " + set.What
		for _, form := range []struct{ key, label, ending string }{{"j", "JSONL", ".jsonl"}, {"c", "CSV", ".csv"}} {
			path, problem := m.exportPath(set.Name, form.ending)
			help := path
			if set.Note != "" {
				help = set.Note + " · " + path
			}
			choice := widget.Choice{Key: form.key, Label: form.label, Help: help, Not: problem}
			offers = append(offers, offer{choice, func() tea.Cmd { return m.export(set, path) }})
		}
	}
	if op := m.exportUnderWay(); op != nil {
		choice := widget.Choice{Key: "x", Label: "stop", Help: op.Title + ", which is being written"}
		offers = append(offers, offer{choice, func() tea.Cmd { m.stopOperation(op); return nil }})
	}
	if len(offers) == 0 {
		m.say("There is nothing here to export.")
		return
	}
	m.openOffers(title, offers)
}

// exportUnderWay is the newest running export, or nil.
func (m *Model) exportUnderWay() *act.Operation {
	for _, op := range slices.Backward(m.env.Session) {
		if op.Request.Kind == kindExport {
			if _, runs := m.underWay[op]; runs {
				return op
			}
		}
	}
	return nil
}

// exportNote is the progress of a running export.
func (m *Model) exportNote() string {
	op := m.exportUnderWay()
	if op == nil {
		return ""
	}
	done, _ := op.Progress.Read()
	return "writing " + widget.Clean(op.Title) + ": " + m.env.Plural(done, "row", "rows") + " · e, then x stops it   "
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// exportPath is the default path of an export.
func (m *Model) exportPath(name, ending string) (path, problem string) {
	if m.opts.Exports == "" {
		return "", "no folder is known for it: :export FILE names one"
	}
	base := strings.Trim(unfit.ReplaceAllString(cmp.Or(m.opts.Context, "default")+"-"+name, "-"), "-.")
	return filepath.Join(m.opts.Exports,
		base[:min(len(base), 100)]+"-"+m.env.Now.UTC().Format("20060102T150405Z")+ending), ""
}

// export writes a file as an operation of the log. Quitting asks first while it runs.
func (m *Model) export(set *export.Set, path string) tea.Cmd {
	request := act.Request{Kind: kindExport, Target: act.Target{Name: set.What}}
	op := m.newOperation(request, "export of "+set.Name, act.Running)
	op.Ran = m.env.Clock
	return m.work(op, exportTimeout, "export", func(ctx context.Context) (*act.Receipt, error) {
		receipt, err := set.Write(ctx, path, op.Progress)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("stopped after %s", exportTimeout)
		}
		return receipt, err
	})
}

// all reads every row that matches the filter of the open list; nil if all of them are loaded.
func (m *Model) all(progress *act.Progress) export.Rows {
	switch m.view {
	case keymap.InExecutions:
		return export.Executions(m.source, m.executions.Query(), progress)
	case keymap.InWorkflows:
		return export.Workflows(m.source, m.workflows.Query())
	case keymap.InInquiries:
		return export.Inquiries(m.source, m.inquiries.Query())
	case keymap.InDeadLetters:
		if ask, ok := m.deadLetters.All(); ok {
			return export.DeadLetters(m.source, ask)
		}
	}
	return nil
}

// byKeys reads rows of the open list by their keys; nil if the database cannot.
func (m *Model) byKeys(keys []string) export.Rows {
	ids, r := numbersOf(keys), m.source
	var read func(some []int64) export.Rows
	switch m.view {
	case keymap.InExecutions:
		read = func(some []int64) export.Rows { return export.Executions(r, monitor.ExecutionFilter{IDs: some}, nil) }
	case keymap.InWorkflows:
		read = func(some []int64) export.Rows { return export.Workflows(r, monitor.WorkflowFilter{IDs: some}) }
	case keymap.InInquiries:
		read = func(some []int64) export.Rows { return export.Inquiries(r, monitor.InquiryFilter{IDs: some}) }
	case keymap.InDeadLetters:
		if ask, ok := m.deadLetters.All(); ok {
			return export.DeadLettersByID(r, ids, ask.Any)
		}
	}
	if read == nil {
		return nil
	}
	return export.ByID(ids, read)
}

func numbersOf(keys []string) []int64 {
	ids := make([]int64, 0, len(keys))
	for _, key := range keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
