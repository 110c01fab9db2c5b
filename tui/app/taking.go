package app

import (
	"context"
	"fmt"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// takePage is how many rows are read at once to be marked.
const takePage = 1_000

// taken are the keys of the rows that a filter matched when they were read.
type taken struct {
	keys []string
	// cut is true when more match than one plan takes, bounded when the search has
	// stopped before it had looked at everything.
	cut, bounded bool
}

// takenMsg answers the question that a list asked when all of it was to be marked.
type takenMsg struct {
	view  screen.View
	asked int
	wish  int
	taken taken
	err   error
}

// take reads the keys of all rows that match, to mark them. What comes later is not
// among them.
func (m *Model) take() tea.Cmd {
	s, ok := m.screen().(screen.Taker)
	read := m.taker(m.view)
	if !ok || read == nil {
		return nil
	}
	m.takes++
	m.say("Reading all that match, to mark them …")
	msg, ctx := takenMsg{view: m.view, asked: s.Asked(), wish: m.takes}, m.ctx
	return func() tea.Msg {
		msg.err = read(ctx, &msg.taken)
		return msg
	}
}

// taker reads the keys of all rows of a view, as it is filtered now.
func (m *Model) taker(view screen.View) func(ctx context.Context, into *taken) error {
	r := m.source
	if view != keymap.InExecutions {
		return nil
	}
	filter := m.executions.Query()
	filter.Limit = takePage
	return func(ctx context.Context, into *taken) error {
		return pageThrough(ctx, into, func(ctx context.Context, cursor int64) ([]string, int64, bool, error) {
			page, err := settled(r.Executions(ctx, filter, cursor))
			if err != nil {
				return nil, 0, false, err
			}
			keys := make([]string, len(page.List))
			for i := range page.List {
				keys[i] = strconv.FormatInt(page.List[i].ID, 10)
			}
			return keys, page.Next, page.Bounded, nil
		})
	}
}

// pageThrough reads page after page, each in its own time, until there are no more
// or there are as many as one plan takes. The zero cursor begins, and ends.
func pageThrough[C comparable](ctx context.Context, into *taken, read func(context.Context, C) (keys []string, next C, bounded bool, err error)) error {
	var cursor, none C
	for {
		keys, next, bounded, err := readPage(ctx, cursor, read)
		if err != nil {
			return err
		}
		into.keys, into.bounded = append(into.keys, keys...), into.bounded || bounded && next == none
		if len(into.keys) > act.MaxTargets || len(into.keys) == act.MaxTargets && next != none {
			into.keys, into.cut = into.keys[:act.MaxTargets], true
			return nil
		}
		if next == none || next == cursor {
			return nil
		}
		cursor = next
	}
}

func readPage[C comparable](ctx context.Context, cursor C, read func(context.Context, C) ([]string, C, bool, error)) ([]string, C, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return read(ctx, cursor)
}

// settled is settle with the type kept.
func settled[T any](result *T, err error) (*T, error) {
	if _, err := settle(result, err); err != nil {
		return nil, err
	}
	return result, nil
}

// marked marks what was read, unless the list asks something else by now or the
// operator has taken the marks away.
func (m *Model) marked(msg takenMsg) {
	s, ok := m.screens[msg.view].(screen.Taker)
	if !ok || msg.wish != m.takes || msg.asked != s.Asked() {
		return
	}
	if msg.err != nil {
		m.say("Only those that are loaded are marked: " + reason(msg.err).Error())
		return
	}
	s.Table().MarkAhead(msg.taken.keys)
	count := widget.Number(int64(len(msg.taken.keys)), m.env.Theme.Glyphs.Space)
	switch {
	case msg.taken.cut:
		m.say(fmt.Sprintf("The first %s are marked, which is the most that one plan takes; more match.", count))
	case msg.taken.bounded:
		m.say(fmt.Sprintf("%s are marked. The search stopped at its bound: more may match.", count))
	default:
		m.say(fmt.Sprintf("All %s that match now are marked.", count))
	}
}
