package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
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
	// Context is the name of the installation, shown in the header in Colour, one
	// of theme.Colours; empty means the accent of the theme.
	Context string
	Colour  string
	// Protected asks for the name of the installation where y would do elsewhere,
	// and marks it in the header.
	Protected bool
	// View is the view to open first; empty means the overview.
	View screen.View
	// Filter is put in place in that view; empty lists all.
	Filter string
	// Refresh is the interval between polls; zero means two seconds.
	Refresh time.Duration
	// Theme chooses the look.
	Theme theme.Options
	// Clock is the local clock; nil means time.Now.
	Clock func() time.Time
	// After makes the command that delivers a message later; nil means a timer.
	After func(d time.Duration, msg tea.Msg) tea.Cmd
	// Acts carries out acts; nil makes a dashboard that only reads.
	Acts Acts
	// ReadOnly says why nothing may be acted upon; empty where it may.
	ReadOnly string
	// Origin says where the installation is looked for.
	Origin Origin
	// Contexts names what Connect can turn the dashboard to.
	Contexts []string
	Connect  Connect
	// Close ends the sessions of the installation that is shown first; nil does
	// nothing.
	Close func()
	// Keys is the key map; nil means that of the program.
	Keys *keymap.Map
	// Environ is the environment of the program; its HOME stands for ~ in file names.
	Environ []string
	// Bookmarks are views as they were arranged; SaveBookmark keeps a further one,
	// and may write a file. Nil keeps none.
	Bookmarks    []settings.Bookmark
	SaveBookmark func(settings.Bookmark) error
	// Clipboard puts a text into the clipboard of the terminal. It writes to the
	// terminal, at once and from a goroutine of its own. Nil says that there is none.
	Clipboard func(text string) error
	// AskBackground asks the terminal for the colour of its background; a BackgroundMsg
	// answers. Nil does not ask.
	AskBackground func() error
	// Exports is the folder for exports that are given no name; empty where none is
	// known.
	Exports string
	// Hints shows for a minute which keys matter in the open view. HintsEnded is called
	// when that has ended, and may write a file; nil remembers nothing.
	Hints      bool
	HintsEnded func() error
	// Notice is a line that the operator should see first.
	Notice string
	// Random returns a number in [0,1) for jitter; nil means the global source.
	Random func() float64
}

// DefaultRefresh is the interval between polls.
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

// Model is the dashboard. It is the only tea.Model; everything below it is a
// plain struct.
type Model struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea has no context of its own; commands need one.
	opts   Options
	source Reader
	env    *screen.Env
	keymap *keymap.Map

	queues     *queues.Queues
	queue      *queue.Queue
	executions *executions.Executions
	xray       *xray.Xray
	worker     *worker.Worker
	workerList *workers.Workers
	execution  *execution.Execution
	workflows  *workflows.Workflows
	letters    *deadletters.DeadLetters
	letter     *deadletters.Detail
	inquiries  *inquiries.Inquiries
	operations *operations.Operations
	alerts     *alerts.Alerts
	screens    map[screen.View]screen.Screen

	view screen.View
	// trail is the way up; visits are all places of the session in their order, of
	// which visited is the present one.
	trail   []spot
	visits  []visit
	visited int

	width, height int
	// overlays are what lies above the open view; the last one takes the keys.
	overlays []overlay
	// palette remembers the commands of the session.
	palette *palette.Palette
	// readOnly is why the operator locked acting; empty where they did not.
	readOnly string
	// led are the filters with which the operator was led to views.
	led map[screen.View]string
	// pending is the first letter of a key that is typed as two.
	pending string
	toast   string
	toastAt time.Time

	// held is what was read while a dialog is open: nothing moves below it.
	held map[screen.Feed]any
	// underWay are the operations that run, each with what stops it; workers are
	// the goroutines that run them.
	underWay      map[*act.Operation]context.CancelFunc
	workers       sync.WaitGroup
	lastOperation int64
	// lastPress numbers the letters that were pressed on a button of a question.
	lastPress int
	// reports are the operations that have ended and whose end is still in sight.
	reports  []*act.Operation
	spinning bool
	// leaving is what the operator asked for while something runs, and when.
	leaving   string
	leavingAt time.Time
	// place is the installation that is shown; wishes counts the wishes for
	// another, of which the last one counts. sessions are the logs of those that
	// were shown before.
	place  *place
	wishes int
	// clicked is the line that was clicked last, and when.
	clicked   int
	clickedAt time.Time
	bookmarks []settings.Bookmark
	// takes counts the wishes to mark all of a list, of which the last one counts.
	takes    int
	sessions map[string][]*act.Operation

	hinting      hinting
	chains       map[screen.Feed]*chain
	refreshEvery time.Duration
	paused       bool
	blurred      bool
	// asked is when the terminal was asked for its background.
	asked time.Time
	// skew is the database's clock minus the local one, once synced is true.
	skew   time.Duration
	synced bool
}

// New makes the dashboard. The context ends every read that is under way. An
// unknown theme or view is an error.
func New(ctx context.Context, source Reader, opts Options) (*Model, error) {
	opts = opts.withDefaults()
	look, err := theme.New(opts.Theme)
	if err != nil {
		return nil, err
	}
	m := &Model{
		ctx: ctx, opts: opts, source: source, env: &screen.Env{Theme: look}, keymap: opts.Keys, view: opts.View,
		chains: map[screen.Feed]*chain{}, refreshEvery: min(max(opts.Refresh, minRefresh), maxRefresh),
		underWay: map[*act.Operation]context.CancelFunc{}, place: &place{close: opts.Close}, palette: palette.New(),
		bookmarks: slices.Clone(opts.Bookmarks),
	}
	m.furnish()
	if !slices.Contains(Views, opts.View) {
		return nil, fmt.Errorf("unknown view %q: choose one of %s", opts.View, Names(Views))
	}
	if err := m.begin(opts.Filter); err != nil {
		return nil, err
	}
	m.tick()
	m.hinting = hinting{on: opts.Hints, since: m.env.Clock}
	m.say(opts.Notice)
	return m, nil
}

// begin puts a filter in place before anything is read.
func (m *Model) begin(filter string) error {
	if filter == "" {
		return nil
	}
	f, ok := m.screen().(screen.Filterable)
	if !ok {
		return fmt.Errorf("%s cannot be filtered", m.view)
	}
	if err := f.SetFilter(filter); err != nil {
		return fmt.Errorf("the filter %q: %w", filter, err)
	}
	return nil
}

// furnish makes the screens anew, with nothing read and nothing chosen. All that
// belongs to one installation begins here.
func (m *Model) furnish() {
	env := m.env
	env.Data, env.Quiet = screen.NewData(), screen.Quiet{}
	m.held, m.trail, m.visits, m.visited = map[screen.Feed]any{}, nil, nil, 0
	m.takes++
	m.led = map[screen.View]string{}
	m.queues, m.queue, m.executions, m.execution = queues.New(env), queue.New(env), executions.New(env),
		execution.New(env)
	m.workflows, m.inquiries, m.operations = workflows.New(env), inquiries.New(env), operations.New(env)
	m.letters, m.alerts = deadletters.New(env), alerts.New(env)
	m.letter = deadletters.NewDetail(env, m.letters)
	m.xray = xray.New(env)
	m.worker, m.workerList = worker.New(env), workers.New(env)
	m.screens = map[screen.View]screen.Screen{
		keymap.InOverview: overview.New(env), keymap.InQueues: m.queues, keymap.InQueue: m.queue,
		keymap.InExecutions: m.executions,
		keymap.InExecution:  m.execution, keymap.InWorkers: m.workerList, keymap.InWorker: m.worker,
		keymap.InDeadLetters: m.letters, keymap.InLetter: m.letter,
		keymap.InWorkflows: m.workflows, keymap.InAlerts: m.alerts, keymap.InInquiries: m.inquiries,
		keymap.InBroker: brokerqueues.New(env),
		keymap.InLog:    m.operations, keymap.InXray: m.xray, keymap.InReplicas: replicas.New(env),
	}
}

// tick takes the time for this message.
func (m *Model) tick() {
	m.env.Clock = m.opts.Clock()
	m.env.Now = m.env.Clock.Add(m.skew)
	m.env.Locked = m.actingLock()
	m.ageReports()
}

func (m *Model) screen() screen.Screen { return m.screens[m.view] }

// clockMsg redraws ages once a second.
type clockMsg struct{}

// BackgroundMsg says what background the terminal has.
type BackgroundMsg struct{ Dark bool }

// backgroundTime is how long an answer about the background is waited for. A look that
// changes later would surprise.
const backgroundTime = 200 * time.Millisecond

// Init starts the clock and the polls of the first view, and asks for the background.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.resume(), m.listen(), m.opts.After(time.Second, clockMsg{})}
	if ask := m.opts.AskBackground; ask != nil {
		m.asked = m.opts.Clock()
		cmds = append(cmds, func() tea.Msg {
			_ = ask() // a terminal that cannot be asked keeps the look it has
			return nil
		})
	}
	return tea.Batch(cmds...)
}

// background takes over what background the terminal has.
func (m *Model) background(msg BackgroundMsg) {
	if m.opts.Theme.Dark == msg.Dark || m.env.Clock.Sub(m.asked) > backgroundTime {
		return
	}
	m.opts.Theme.Dark = msg.Dark
	opts := m.opts.Theme
	opts.Name = m.env.Theme.Name()
	if look, err := theme.New(opts); err == nil {
		m.env.Theme = look
	}
}

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.tick()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.env.Width, m.env.Height = m.width, m.height-topLines-bottomLines
		return m, m.follow(nil) // a larger view may show more of the row under the cursor
	case snapMsg:
		return m, tea.Batch(m.snapshot(msg), m.follow(msg.err))
	case dueMsg:
		switch {
		case msg.gen != m.chain(msg.feed).gen:
		case m.paused:
			return m, m.probe(msg.feed)
		default:
			return m, m.fetch(msg.feed, false)
		}
	case nudgeMsg:
		return m, m.nudged(msg)
	case familyMsg:
		m.relatedRead(msg)
	case planMsg:
		m.planned(msg)
	case runMsg:
		return m, m.ran(msg)
	case letterMsg:
		return m, tea.Batch(m.letterAlone(msg), m.follow(nil))
	case savedMsg:
		m.saved(msg)
	case copiedMsg:
		m.copied(msg)
	case takenMsg:
		return m, m.marked(msg)
	case turnedMsg:
		return m, m.turned(msg)
	case spinMsg:
		m.spinning = false
		return m, m.spin()
	case BackgroundMsg:
		m.background(msg)
	case clockMsg:
		return m, tea.Batch(m.opts.After(time.Second, clockMsg{}), m.ageHints())
	case hintsEndedMsg:
		m.hintsEnded(msg)
	case tea.FocusMsg:
		m.blurred = false
		if !m.paused {
			return m, m.refresh()
		}
	case tea.BlurMsg:
		m.blurred = true
	case tea.MouseMsg:
		return m, tea.Batch(m.mouse(msg), m.follow(nil))
	case tea.KeyMsg:
		return m, tea.Batch(m.keys(msg), m.follow(nil))
	}
	return m, nil
}

// Wait waits for the operations under way, which end soon once the context of
// the dashboard has, for at most the given time.
func (m *Model) Wait(atMost time.Duration) {
	ended := make(chan struct{})
	go func() {
		m.workers.Wait()
		close(ended)
	}()
	patience := time.NewTimer(atMost)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
}

// say shows a short message for a few seconds.
func (m *Model) say(text string) { m.toast, m.toastAt = text, m.env.Clock }

// goTo turns to a view. The numbered ones are at the top, so nothing is above them but
// the end of the program; the others are opened from the present view.
func (m *Model) goTo(view screen.View) tea.Cmd {
	numbered := slices.Contains(Views, view)
	if view == m.view {
		if numbered {
			m.trail = nil
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

// back closes what is open, then clears the filter, then returns to where the
// operator came from, at once where the filter is of the way that led here. At the top level there is nothing to do.
func (m *Model) back() tea.Cmd {
	if m.dismiss() || m.closePart() {
		return nil
	}
	if f, ok := m.screen().(screen.Filterable); ok && f.Filter() != "" &&
		(len(m.trail) == 0 || f.Filter() != m.led[m.view]) {
		cmd, _ := m.applyFilter("") // which matches everything
		return cmd
	}
	if len(m.trail) == 0 {
		return nil
	}
	return m.up()
}

// leaveView closes what is open, or returns to where the operator came from, with the
// filter left as it is.
func (m *Model) leaveView() tea.Cmd {
	if m.dismiss() || m.closePart() {
		return nil
	}
	return m.up()
}

// closePart closes what a screen has open of its own.
func (m *Model) closePart() bool {
	l, ok := m.screen().(screen.Leaver)
	return ok && l.Leave()
}
