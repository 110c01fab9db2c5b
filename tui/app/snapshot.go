package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Snapshot is one frame of a view without a terminal.
type Snapshot struct {
	model *Model
}

// SnapshotViews lists the views of snapshots.
func SnapshotViews() []screen.View { return append(slices.Clone(keymap.Scopes), keymap.InHelp) }

// Take reads a view once with the model that draws it live. A view of one thing needs its id or name. A source that
// does not answer is shown in the snapshot and no error.
func Take(ctx context.Context, source Reader, opts Options, thing string, width, height int) (*Snapshot, error) {
	view := opts.View
	beside := view != "" && !slices.Contains(Views, view)
	switch {
	case beside && !slices.Contains(SnapshotViews(), view):
		return nil, fmt.Errorf("unknown view %q: choose one of %s", view, Names(SnapshotViews()))
	case beside && view != keymap.InHelp && keymap.ViewOf(view).One && thing == "":
		return nil, fmt.Errorf("a snapshot of %s needs --id: which one?", view)
	case beside:
		opts.View = ""
	}
	m, err := New(ctx, source, opts)
	if err != nil {
		return nil, err
	}
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	if beside {
		if view == keymap.InHelp {
			m.push(&help{})
		} else {
			m.view = view
		}
	}
	if thing != "" {
		if err := m.showThing(thing); err != nil {
			return nil, err
		}
	}
	m.readOnce(m.visible())
	m.readOnce(m.behind()) // the first reading has selected a row
	return &Snapshot{model: m}, nil
}

// showThing shows one thing by its number; queues and workers also by name.
func (m *Model) showThing(name string) error {
	s, ok := m.screen().(screen.Showing)
	if !ok {
		return fmt.Errorf("%s shows no one thing, so --id means nothing there", m.view)
	}
	id, err := strconv.ParseInt(name, 10, 64)
	switch {
	case err == nil && id > 0:
	case m.view == keymap.InQueue:
		m.readOnce([]screen.Feed{screen.FeedQueues})
		id = m.queueNamed(name)
	case m.view == keymap.InWorker:
		m.readOnce([]screen.Feed{screen.FeedWorkers})
		id = m.workerNamed(name)
	default:
		return fmt.Errorf("%q is no number, by which %s knows what it shows", name, m.view)
	}
	if id <= 0 {
		return fmt.Errorf("there is no %s %q among the loaded ones", m.view, name)
	}
	s.Show(strconv.FormatInt(id, 10))
	return nil
}

// Names lists views in a text.
func Names(views []screen.View) string {
	names := make([]string, len(views))
	for i, v := range views {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// readOnce reads feeds in parallel. There is no second read, so each may take as long as any.
func (m *Model) readOnce(feeds []screen.Feed) {
	answers := make([]tea.Msg, len(feeds))
	var readers sync.WaitGroup
	for i, feed := range feeds {
		m.stop(feed) // cancel a read that was requested but not started
		c := m.chain(feed)
		c.once, c.probe, c.timeout = true, false, LongestRead
		read := m.read(feed, c.timeout, feedNamed[feed].read(m))
		readers.Go(func() { answers[i] = read() })
	}
	readers.Wait()
	for _, msg := range answers {
		m.Update(msg)
	}
}

// behind lists the feeds that became visible with the first reading.
func (m *Model) behind() []screen.Feed {
	var feeds []screen.Feed
	for _, feed := range m.visible() {
		if m.env.Data.Fresh(feed).At.IsZero() && m.env.Data.Fresh(feed).Err == nil && !slices.Contains(feeds, feed) {
			feeds = append(feeds, feed)
		}
	}
	return feeds
}

// Text is the frame as text.
func (s *Snapshot) Text() string {
	lines := strings.Split(s.model.View(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// document is the JSON of a snapshot.
type document struct {
	View     screen.View     `json:"view"`
	Feeds    []feedDocument  `json:"feeds"`
	Findings json.RawMessage `json:"findings"`
	Data     *screen.Data    `json:"data"`
}

type feedDocument struct {
	Feed   screen.Feed `json:"feed"`
	Millis int64       `json:"took_ms"`
	Error  string      `json:"error,omitempty"`
}

// keyDocument is a key in the JSON of the help.
type keyDocument struct {
	Keys  string         `json:"keys"`
	Does  keymap.Action  `json:"action"`
	Help  string         `json:"help"`
	Where []keymap.Scope `json:"where"`
	Acts  bool           `json:"acts"`
}

// JSON is the data of the frame with masked secrets; for the help, its keys.
func (s *Snapshot) JSON() ([]byte, error) {
	if _, help := s.model.top().(*help); help {
		var keys []keyDocument
		for _, b := range s.model.keymap.All() {
			keys = append(keys, keyDocument{Keys: b.Show, Does: b.Action, Help: b.Help, Where: b.Scopes, Acts: b.Acts})
		}
		return masked(keys)
	}
	findings, err := json.Marshal(s.model.env.Findings())
	if err != nil {
		return nil, fmt.Errorf("write findings: %w", err)
	}
	doc := document{View: s.model.view, Data: s.model.env.Data, Findings: findings}
	for _, feed := range s.model.visible() {
		fresh := s.model.env.Data.Fresh(feed)
		f := feedDocument{Feed: feed, Millis: fresh.Took.Milliseconds()}
		if fresh.Err != nil {
			f.Error = fresh.Err.Error()
		}
		doc.Feeds = append(doc.Feeds, f)
	}
	return masked(doc)
}

// masked writes indented JSON without secrets.
func masked(doc any) ([]byte, error) {
	text, err := export.JSON(doc)
	if err != nil {
		return nil, fmt.Errorf("write the snapshot: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
		return nil, fmt.Errorf("write the snapshot: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Failed reports whether no source answered.
func (s *Snapshot) Failed() bool {
	for _, feed := range s.model.visible() {
		if s.model.env.Data.Fresh(feed).Err == nil {
			return false
		}
	}
	return true
}
