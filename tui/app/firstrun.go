package app

import (
	"strings"

	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Origin says where an installation was configured, for the screen of an unreachable one. The zero value says
// nothing.
type Origin struct {
	// Database and Broker are addresses without passwords.
	Database, Broker string
	// NamedBy is the file or variable that names them.
	NamedBy string
	// Unnamed is true if nothing names them, as in most first runs.
	Unnamed bool
	// Schema is the schema of the tables. Queues is the address of the queue pages in the broker's management
	// interface without a login and a queue name. Both are empty if unknown.
	Schema, Queues string
	// Settings is the file that can name installations.
	Settings string
}

// neverAnswered reports whether the database has never answered, and the open view has no data from elsewhere.
func (m *Model) neverAnswered() bool {
	overview := m.env.Data.Fresh(screen.FeedOverview)
	return m.opts.Origin != (Origin{}) && overview.Err != nil && overview.At.IsZero() &&
		m.env.Data.Fresh(m.mainFeed()).At.IsZero()
}

// firstRun says which servers were tried, where they are configured, and what to do next.
func (m *Model) firstRun(w int) []string {
	e, o := m.env, m.opts.Origin
	lines := []string{"", " " + e.Paint(theme.Strong, "The database has not answered yet."), ""}
	add := func(name, text string) {
		for i, part := range widget.Wrap(text, w-14) {
			if i > 0 {
				name = ""
			}
			lines = append(lines, " "+e.Paint(theme.Dim, widget.Left(name, 11))+" "+part)
		}
	}
	add("database", o.Database+": "+widget.Clean(e.Data.Fresh(screen.FeedOverview).Trouble().Fact))
	add("broker", m.brokerTried())
	add("named by", o.NamedBy)
	lines = append(lines, "", " "+e.Paint(theme.Dim, "WHAT TO DO"))
	for _, step := range m.firstSteps() {
		add(step[0], step[1])
	}
	return append(lines, "", " It is tried again by itself; r tries at once.")
}

func (m *Model) brokerTried() string {
	fresh := m.env.Data.Fresh(screen.FeedBroker)
	switch {
	case m.opts.Origin.Broker == "":
		return "none is named; without one its queues are not shown"
	case fresh.Err != nil:
		return m.opts.Origin.Broker + ": " + widget.Clean(fresh.Trouble().Fact)
	case fresh.At.IsZero():
		return m.opts.Origin.Broker
	default:
		return m.opts.Origin.Broker + " answers"
	}
}

func (m *Model) firstSteps() [][2]string {
	var steps [][2]string
	if m.opts.Origin.Unnamed {
		steps = append(steps,
			[2]string{"try it", "`attune-lab demo` shows everything at work on private servers"},
			[2]string{"start", "`attune-lab stack up`, then `migrate up`, make private servers in this folder, which are found by themselves"},
			[2]string{
				"name",
				"--config FILE, or ATTUNE__DATABASE__URL and ATTUNE__MESSAGE_QUEUE__URL, as the executor has them",
			},
		)
		if m.opts.Origin.Settings != "" {
			steps = append(steps, [2]string{"remember", "contexts in " + m.opts.Origin.Settings})
		}
	} else {
		steps = append(steps, [2]string{
			"check",
			"`attune-executor doctor` with the same configuration finds the cause",
		})
	}
	if len(m.opts.Contexts) > 0 {
		steps = append(steps, [2]string{"elsewhere", ":ctx turns to " + strings.Join(m.opts.Contexts, ", ")})
	}
	return steps
}
