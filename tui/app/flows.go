package app

import (
	"fmt"
	"slices"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/screen"
)

// follow reads what is under the cursor when that is something else than was read
// last. Nothing that is under way is given up for it: who runs down a list asks for
// few rows, and last for the one where they stop. After a failure the feed is tried
// again by itself.
func (m *Model) follow(failed error) tea.Cmd {
	f, ok := m.screen().(screen.Follower)
	if !ok || failed != nil || m.modal() {
		return nil
	}
	feed := f.Behind()
	if feed == "" || m.chain(feed).busy {
		return nil
	}
	return m.restart(feed)
}

// workflowIDs lists the workflows that were read.
func (m *Model) workflowIDs() []string {
	var ids []string
	if d := m.env.Data.Workflows; d != nil {
		for i := range d.List {
			ids = append(ids, strconv.FormatInt(d.List[i].Execution, 10))
		}
	}
	return ids
}

func (m *Model) openWorkflow(arg string) (tea.Cmd, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return nil, fmt.Errorf("%q is not the execution of a workflow", arg)
	}
	return m.effect(screen.OpenWorkflow(id)), nil
}

// inquiryIDs lists the inquiries that were read.
func (m *Model) inquiryIDs() []string {
	var ids []string
	if d := m.env.Data.Inquiries; d != nil {
		for i := range d.List {
			ids = append(ids, strconv.FormatInt(d.List[i].ID, 10))
		}
	}
	return ids
}

func (m *Model) openInquiry(arg string) (tea.Cmd, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return nil, fmt.Errorf("%q is not the number of an inquiry", arg)
	}
	return m.effect(screen.OpenInquiry(id)), nil
}

// inquiryBadge counts the questions that wait.
func (m *Model) inquiryBadge() string {
	o := m.env.Data.Overview
	if o == nil || o.Flows == nil || o.Flows.Inquiries.Value == 0 {
		return ""
	}
	return " " + m.env.Count(o.Flows.Inquiries) + m.env.Mark(screen.FeedOverview)
}

// behind lists the feeds that a first reading has shown to be wanted.
func (m *Model) behind() []screen.Feed {
	var feeds []screen.Feed
	for _, feed := range m.visible() {
		if m.env.Data.Fresh(feed).At.IsZero() && m.env.Data.Fresh(feed).Err == nil && !slices.Contains(feeds, feed) {
			feeds = append(feeds, feed)
		}
	}
	return feeds
}
