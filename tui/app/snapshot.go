package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/screen"
)

// Snapshot is one reading of a view without a terminal.
type Snapshot struct {
	model *Model
}

// Take reads what a view shows, once, through the same model that draws it
// live. A source that does not answer is part of the snapshot, not an error.
func Take(ctx context.Context, source Reader, opts Options, width, height int) (*Snapshot, error) {
	m, err := New(ctx, source, opts)
	if err != nil {
		return nil, err
	}
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	m.readOnce(m.visible())
	m.readOnce(m.behind()) // what the first reading has put under the cursor
	return &Snapshot{model: m}, nil
}

// readOnce reads feeds together and takes over their answers.
func (m *Model) readOnce(feeds []screen.Feed) {
	answers := make([]tea.Msg, len(feeds))
	var readers sync.WaitGroup
	for i, feed := range feeds {
		m.stop(feed) // what was asked for but never read
		read := m.fetch(feed, true)
		readers.Go(func() { answers[i] = read() })
	}
	readers.Wait()
	for _, msg := range answers {
		m.Update(msg)
	}
}

// Text is the frame as a person would see it.
func (s *Snapshot) Text() string {
	lines := strings.Split(s.model.View(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// document is what JSON prints: the data behind the view and the state of the
// feeds it came from.
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

func feedOf(feed screen.Feed, fresh *screen.Freshness) feedDocument {
	f := feedDocument{Feed: feed, Millis: fresh.Took.Milliseconds()}
	if fresh.Err != nil {
		f.Error = fresh.Err.Error()
	}
	return f
}

// JSON is the data behind the frame.
func (s *Snapshot) JSON() ([]byte, error) {
	findings, err := json.Marshal(s.model.env.Findings())
	if err != nil {
		return nil, fmt.Errorf("write findings: %w", err)
	}
	doc := document{View: s.model.view, Data: s.model.env.Data, Findings: findings}
	for _, feed := range s.model.visible() {
		fresh := s.model.env.Data.Fresh(feed)
		doc.Feeds = append(doc.Feeds, feedOf(feed, fresh))
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write snapshot of %s: %w", doc.View, err)
	}
	return append(out, '\n'), nil
}

// Failed reports whether no source answered at all.
func (s *Snapshot) Failed() bool {
	for _, feed := range s.model.visible() {
		if s.model.env.Data.Fresh(feed).Err == nil {
			return false
		}
	}
	return true
}
