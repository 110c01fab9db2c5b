package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/alerts"
	"github.com/attune-go/attune/tui/screen/brokerqueues"
	"github.com/attune-go/attune/tui/screen/deadletters"
	"github.com/attune-go/attune/tui/screen/execution"
	"github.com/attune-go/attune/tui/screen/executions"
	"github.com/attune-go/attune/tui/screen/inquiries"
	"github.com/attune-go/attune/tui/screen/operations"
	"github.com/attune-go/attune/tui/screen/overview"
	"github.com/attune-go/attune/tui/screen/queue"
	"github.com/attune-go/attune/tui/screen/queues"
	"github.com/attune-go/attune/tui/screen/replicas"
	"github.com/attune-go/attune/tui/screen/worker"
	"github.com/attune-go/attune/tui/screen/workers"
	"github.com/attune-go/attune/tui/screen/workflows"
	"github.com/attune-go/attune/tui/screen/xray"
	"github.com/attune-go/attune/tui/settings"
	"github.com/attune-go/attune/tui/theme"
)

// Options configures the dashboard.
type Options struct {
	// Context is the name of the installation. The header shows it in Colour, one of theme.Colours; empty means the
	// accent colour.
	Context string
	Colour  string
	// Protected asks for the name of the installation before every act, and marks it in the header.
	Protected bool
	// View is the view to open first; empty means the overview.
	View screen.View
	// Filter filters that view at the start.
	Filter string
	// Refresh is the interval between polls; 0 means DefaultRefresh.
	Refresh time.Duration
	// Theme chooses the look.
	Theme theme.Options
	// Clock is the local clock; nil means time.Now.
	Clock func() time.Time
	// After returns a command that delivers a message later; nil means a timer.
	After func(d time.Duration, msg tea.Msg) tea.Cmd
	// Acts plans and runs acts; nil makes a read-only dashboard.
	Acts Acts
	// ReadOnly says why acting is disabled; empty enables it.
	ReadOnly string
	// Origin says where the installation was configured.
	Origin Origin
	// Contexts lists the names that Connect accepts.
	Contexts []string
	Connect  Connect
	// Close closes the first installation; nil does nothing.
	Close func()
	// Keys is the key map; nil means the built-in one.
	Keys *keymap.Map
	// Environ is the environment of the program. Its HOME expands ~ in file names.
	Environ []string
	// SaveBookmark may write a file; nil disables saving.
	Bookmarks    []settings.Bookmark
	SaveBookmark func(settings.Bookmark) error
	// Clipboard puts a text into the clipboard of the terminal. It runs on a goroutine of its own. Nil means that
	// there is no terminal.
	Clipboard func(text string) error
	// AskBackground asks the terminal for its background colour before the first frame; the answer is a BackgroundMsg.
	// Nil does not ask.
	AskBackground func() error
	// Exports is the folder for exports without a file name; empty if unknown.
	Exports string
	// Hints shows important keys of the open view for a minute. HintsEnded is called afterwards and may write a file;
	// nil remembers nothing.
	Hints      bool
	HintsEnded func() error
	// Notice is shown first.
	Notice string
	// Random returns a number in [0,1) for jitter; nil means the global source.
	Random func() float64
}

// DefaultRefresh is the default interval between polls.
const DefaultRefresh = 2 * time.Second

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.After == nil {
		o.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
			return tea.Tick(d, func(time.Time) tea.Msg { return msg })
		}
	}
	if o.Keys == nil {
		o.Keys = keymap.BuiltIn
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Refresh == 0 {
		o.Refresh = DefaultRefresh
	}
	if o.View == "" {
		o.View = keymap.InOverview
	}
	return o
}

// Model is the dashboard, and the only tea.Model. Everything below it is a plain struct.
type Model struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea has no context of its own; commands need one.
	opts   Options
	source Reader
	env    *screen.Env
	keymap *keymap.Map

	queues      *queues.Queues
	queue       *queue.Queue
	executions  *executions.Executions
	xray        *xray.Xray
	worker      *worker.Worker
	workerList  *workers.Workers
	execution   *execution.Execution
	workflows   *workflows.Workflows
	deadLetters *deadletters.DeadLetters
	deadLetter  *deadletters.Detail
	inquiries   *inquiries.Inquiries
	operations  *operations.Operations
	alerts      *alerts.Alerts
	screens     map[screen.View]screen.Screen

	view screen.View
	// parents lead back to the view that the open one was opened from. history lists the locations of the session;
	// historyAt is the present one.
	parents   []location
	history   []historyEntry
	historyAt int

	width, height int
	// overlays lie above the open view; the last one takes the keys.
	overlays []overlay
	// palette keeps the commands of the session.
	palette *palette.Palette
	// readOnly is set while the operator has disabled acting.
	readOnly string
	// openedFilters are the filters that views were opened with. Esc leaves such a view instead of clearing the
	// filter.
	openedFilters map[screen.View]string
	// pending is the first letter of a two-letter key.
	pending string
	toast   string
	toastAt time.Time

	// held are results that were read while a dialog is open. Nothing below a dialog changes.
	held map[screen.Feed]any
	// underWay maps running operations to their cancel functions; workers are their goroutines.
	underWay      map[*act.Operation]context.CancelFunc
	workers       sync.WaitGroup
	lastOperation int64
	// lastPress numbers presses of a letter on a button of a question.
	lastPress int
	// reports are finished operations whose report is still visible.
	reports  []*act.Operation
	spinning bool
	// leaving is a request that needs a second key press because acts are running.
	leaving   string
	leavingAt time.Time
	// conn is the open installation. Only the result of the last connect counts. sessions keeps the operations of
	// earlier installations.
	conn     *connection
	connects int
	// clicked is the line of the last click.
	clicked   int
	clickedAt time.Time
	bookmarks []settings.Bookmark
	// markRequest numbers the requests to mark all rows; only the last one counts.
	markRequest int
	marking     *marking
	sessions    map[string][]*act.Operation

	hinting      hinting
	chains       map[screen.Feed]*chain
	refreshEvery time.Duration
	paused       bool
	blurred      bool
	// backgroundAsked is the time of the question for the background colour.
	backgroundAsked time.Time
	// synced is true once the database's clock is known.
	synced bool
}

// New makes the dashboard. Ending the context cancels every read. An unknown theme or view is an error.
func New(ctx context.Context, source Reader, opts Options) (*Model, error) {
	opts = opts.withDefaults()
	look, err := theme.New(opts.Theme)
	if err != nil {
		return nil, err
	}
	m := &Model{
		ctx: ctx, opts: opts, source: source, env: &screen.Env{Theme: look}, keymap: opts.Keys, view: opts.View,
		chains: map[screen.Feed]*chain{}, refreshEvery: min(max(opts.Refresh, minRefresh), maxRefresh),
		underWay: map[*act.Operation]context.CancelFunc{}, conn: &connection{close: opts.Close}, palette: palette.New(),
		bookmarks: slices.Clone(opts.Bookmarks),
	}
	m.newScreens()
	if !slices.Contains(Views, opts.View) {
		return nil, fmt.Errorf("unknown view %q: choose one of %s", opts.View, Names(Views))
	}
	if opts.Filter != "" {
		f, ok := m.screen().(screen.Filterable)
		if !ok {
			return nil, fmt.Errorf("%s cannot be filtered", m.view)
		}
		if err := f.SetFilter(opts.Filter); err != nil {
			return nil, fmt.Errorf("the filter %q: %w", opts.Filter, err)
		}
	}
	m.tick()
	m.hinting = hinting{on: opts.Hints, since: m.env.Clock}
	m.say(opts.Notice)
	return m, nil
}

// newScreens resets everything that belongs to one installation.
func (m *Model) newScreens() {
	env := m.env
	env.Data, env.Quiet = screen.NewData(), screen.Quiet{}
	m.held, m.openedFilters = map[screen.Feed]any{}, map[screen.View]string{}
	m.parents, m.history, m.historyAt = nil, nil, 0
	m.markRequest++
	m.stopMarking()
	m.queues, m.queue, m.executions, m.execution = queues.New(env), queue.New(env), executions.New(env),
		execution.New(env)
	m.workflows, m.inquiries, m.operations = workflows.New(env), inquiries.New(env), operations.New(env)
	m.deadLetters, m.alerts = deadletters.New(env), alerts.New(env)
	m.deadLetter = deadletters.NewDetail(env, m.deadLetters)
	m.xray = xray.New(env)
	m.worker, m.workerList = worker.New(env), workers.New(env)
	m.screens = map[screen.View]screen.Screen{
		keymap.InOverview: overview.New(env), keymap.InQueues: m.queues, keymap.InQueue: m.queue,
		keymap.InExecutions: m.executions,
		keymap.InExecution:  m.execution, keymap.InWorkers: m.workerList, keymap.InWorker: m.worker,
		keymap.InDeadLetters: m.deadLetters, keymap.InDeadLetter: m.deadLetter,
		keymap.InWorkflows: m.workflows, keymap.InAlerts: m.alerts, keymap.InInquiries: m.inquiries,
		keymap.InBroker: brokerqueues.New(env),
		keymap.InLog:    m.operations, keymap.InXray: m.xray, keymap.InReplicas: replicas.New(env),
	}
}

// tick reads the clock once for each message.
func (m *Model) tick() {
	m.env.Clock = m.opts.Clock()
	if !m.modal() && !m.paused {
		m.env.Now = m.now()
	}
	m.env.Locked = m.actingLock()
	m.reports = slices.DeleteFunc(m.reports, func(op *act.Operation) bool {
		return op.State == act.Done && m.env.Clock.Sub(op.Ended) >= reportTime
	})
}

// now is the estimated time of the database.
func (m *Model) now() time.Time { return m.env.Clock.Add(m.env.Skew) }

func (m *Model) screen() screen.Screen { return m.screens[m.view] }

// clockMsg redraws ages once a second.
type clockMsg struct{}

// BackgroundMsg is the background colour of the terminal.
type BackgroundMsg struct{ Dark bool }

// backgroundTimeout is the time in which the background colour may change the theme. A later change would surprise.
const backgroundTimeout = 200 * time.Millisecond

// Init starts the clock and the polls of the first view.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.resume(), m.listen(), m.opts.After(time.Second, clockMsg{})}
	if ask := m.opts.AskBackground; ask != nil {
		m.backgroundAsked = m.opts.Clock()
		_ = ask() // a terminal that cannot answer keeps the theme; a question after the end would reach the shell
	}
	return tea.Batch(cmds...)
}

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.tick()
	cmd := m.handle(msg)
	m.resizeBody()
	return m, cmd
}

func (m *Model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.env.Width, m.env.Height = m.width, m.height-topLines-bottomLines
		return m.follow(nil) // a larger view may preview the row under the cursor
	case snapMsg:
		return tea.Batch(m.snapshot(msg), m.follow(msg.err))
	case dueMsg:
		switch {
		case msg.gen != m.chain(msg.feed).gen:
		case m.paused:
			return m.probe(msg.feed)
		default:
			return m.fetch(msg.feed, false)
		}
	case nudgeMsg:
		return m.nudged(msg)
	case familyMsg:
		m.relatedRead(msg)
	case planMsg:
		m.planned(msg)
	case runMsg:
		return m.ran(msg)
	case deadLetterMsg:
		return tea.Batch(m.deadLetterAlone(msg), m.follow(nil))
	case savedMsg:
		m.saved(msg)
	case copiedMsg:
		m.copied(msg)
	case matchingMsg:
		return m.marked(msg)
	case turnedMsg:
		return m.turned(msg)
	case spinMsg:
		m.spinning = false
		return m.spin()
	case BackgroundMsg:
		if m.opts.Theme.Dark == msg.Dark || m.env.Clock.Sub(m.backgroundAsked) > backgroundTimeout {
			break
		}
		m.opts.Theme.Dark = msg.Dark
		opts := m.opts.Theme
		opts.Name = m.env.Theme.Name()
		if look, err := theme.New(opts); err == nil {
			m.env.Theme = look
		}
	case clockMsg:
		next := m.opts.After(time.Second, clockMsg{})
		if m.hinting.on && m.env.Clock.Sub(m.hinting.since) >= hintTime {
			return tea.Batch(next, m.endHints())
		}
		return next
	case hintsEndedMsg:
		if msg.err != nil {
			m.say("The end of the hints could not be remembered: " + msg.err.Error())
		}
	case tea.FocusMsg:
		m.blurred = false
		if !m.paused {
			return m.refresh()
		}
	case tea.BlurMsg:
		m.blurred = true
	case tea.MouseMsg:
		return tea.Batch(m.mouse(msg), m.follow(nil))
	case tea.KeyMsg:
		return tea.Batch(m.keys(msg), m.follow(nil))
	}
	return nil
}

// resizeBody fits the open view into the window.
func (m *Model) resizeBody() {
	if m.tooSmall() || m.neverAnswered() {
		return
	}
	if s, ok := m.screen().(screen.Placed); ok {
		s.Places(m.width, m.bodyHeight()).Fit()
	}
	if s, ok := m.screen().(screen.Resizable); ok {
		s.SetSize(m.width, m.bodyHeight())
	}
}

// Wait waits at most the given time for running operations. They end soon after the context of the dashboard.
func (m *Model) Wait(atMost time.Duration) {
	ended := make(chan struct{})
	go func() {
		m.workers.Wait()
		close(ended)
	}()
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	select {
	case <-ended:
	case <-timeout.C:
	}
}

// say shows a message for toastTime.
func (m *Model) say(text string) { m.toast, m.toastAt = text, m.env.Clock }

// goTo opens a view. Numbered views have no parents; all others have the present view as parent.
func (m *Model) goTo(view screen.View) tea.Cmd {
	numbered := slices.Contains(Views, view)
	if view == m.view {
		if numbered {
			m.parents = nil
		}
		return nil
	}
	from := m.here()
	m.hideSecrets()
	if numbered {
		return m.switchView(from, view, nil)
	}
	return m.leaveFor(from, view)
}

// back closes the topmost report or part, or else clears the filter, or else returns to the parent. It returns at
// once if the view was opened with this filter.
func (m *Model) back() tea.Cmd {
	if m.dismiss() || m.stopMarking() || m.closePart() {
		return nil
	}
	if f, ok := m.screen().(screen.Filterable); ok && f.Filter() != "" &&
		(len(m.parents) == 0 || f.Filter() != m.openedFilters[m.view]) {
		cmd, _ := m.applyFilter("") // the empty filter is always valid
		return cmd
	}
	if len(m.parents) == 0 {
		return nil
	}
	return m.up()
}

func (m *Model) closePart() bool {
	l, ok := m.screen().(screen.Leaver)
	return ok && l.Leave()
}
