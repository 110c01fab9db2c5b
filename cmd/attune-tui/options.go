package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	visible "github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/settings"
)

// The limits of reading.
const (
	poolSize         = 4
	connectTimeout   = 3 * time.Second
	statementTimeout = app.LongestRead // reads have shorter timeouts while the database is fast
	plainTimeout     = 5 * time.Second
	// managementTimeout bounds a request to the broker's management interface.
	managementTimeout = app.LongestRead
)

var errHelp = errors.New("help asked for")

// options are the parsed flags.
type options struct {
	app           app.Options
	config        string
	context       string
	contexts      bool
	plain         bool
	snapshot      string
	id            string
	output        string
	width, height int
	noMouse       bool
	readOnly      bool
	version       bool
	completion    string
	given         func(flag string) bool
}

func flags(o *options) *pflag.FlagSet {
	set := pflag.NewFlagSet("attune-tui", pflag.ContinueOnError)
	set.SortFlags = false
	set.StringVar(&o.config, "config", "", "configuration `FILE`; ATTUNE_CONFIG is the default")
	set.StringVar(&o.context, "context", "", "installation to show, by its `NAME` in tui.yaml")
	set.BoolVar(&o.contexts, "contexts", false, "list the contexts of tui.yaml, secrets masked, and exit")
	set.StringVar((*string)(&o.app.View), "view", "overview", "`VIEW` to open: "+app.Names(app.Views))
	set.StringVar(&o.app.Filter, "filter", "", "begin with this `FILTER`, as / takes it: 'status:failed age<1h'")
	o.app.Refresh = app.DefaultRefresh
	set.Var(phrase.SpanFlag{To: &o.app.Refresh}, "refresh", settings.Help("refresh"))
	set.StringVar(&o.app.Theme.Name, "theme", "auto", settings.Help("theme"))
	set.BoolVar(&o.app.Theme.ASCII, "ascii", false, settings.Help("ascii"))
	set.BoolVar(&o.noMouse, "no-mouse", false, strings.TrimPrefix(settings.Help("mouse"), "false: "))
	set.BoolVar(&o.readOnly, "read-only", false, "refuse every act")
	set.BoolVar(&o.plain, "plain", false, "draw nothing: print a line for every change, for screen readers and logs")
	set.StringVar(&o.snapshot, "snapshot", "",
		"print one frame of a `VIEW` and exit: also execution, queue, worker, letter, xray, log, help")
	set.StringVar(&o.id, "id", "", "`ID` of what --snapshot shows: a number, of queues and workers also a name")
	set.StringVarP(&o.output, "output", "o", "text", "what --snapshot, --plain and --contexts print: text or json")
	set.IntVar(&o.width, "width", 140, "width of the printed frame")
	set.IntVar(&o.height, "height", 40, "height of the printed frame")
	set.StringVar(&o.completion, "completion", "", "print the completion script of a `SHELL`: bash, zsh or fish")
	set.BoolVar(&o.version, "version", false, "print the version")
	return set
}

func usage() string {
	return "attune-tui shows an Attune installation live, and acts on it: queues, executions, workers, dead letters, workflows,\nquestions to people.\n\n" +
		"Usage:\n  attune-tui [flags]\n  attune-tui --context prod-eu --read-only\n  attune-tui --snapshot queues -o json\n\nFlags:\n" + flags(&options{}).FlagUsages() +
		"\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 schema too old or too new, 4 no source answered (--snapshot).\n"
}

// parse reads the flags and the environment of the terminal.
func parse(args, environ []string) (options, error) {
	var o options
	set := flags(&o)
	set.Usage = func() {}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return o, errHelp
		}
		return o, fmt.Errorf("%w; --help lists the flags", err)
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; --help lists the flags", set.Arg(0))
	}
	o.given = set.Changed
	if o.config == "" {
		o.config = lookup(environ, "ATTUNE_CONFIG")
	}
	o.app.Theme.NoColor = lookup(environ, "NO_COLOR") != ""
	o.app.Theme.Dark = darkBackground(lookup(environ, "COLORFGBG"))
	utf8, known := visible.UTF8(environ)
	if !o.given("ascii") {
		o.app.Theme.ASCII = known && !utf8
	}
	term := lookup(environ, "TERM")
	if term == "dumb" && o.snapshot == "" { // it cannot move the cursor
		o.plain = true
	}
	// The Linux console has no braille characters.
	o.app.Theme.Braille = term != "" && term != "linux" && utf8 && o.snapshot == ""
	o.app.Theme.Profile = profile(environ)
	return o, o.finish()
}

// follow applies tui.yaml where no flag is given.
func (o *options) follow(file *settings.Settings) {
	if !o.given("theme") && file.Theme != "" {
		o.app.Theme.Name = file.Theme
	}
	if !o.given("refresh") && file.Refresh != 0 {
		o.app.Refresh = file.Refresh
	}
	if !o.given("ascii") {
		o.app.Theme.ASCII = o.app.Theme.ASCII || file.ASCII
	}
	if !o.given("no-mouse") {
		o.noMouse = file.NoMouse
	}
}

// finish checks combinations of flags.
func (o *options) finish() error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("unknown output %q: choose text or json", o.output)
	}
	if o.app.Refresh <= 0 {
		return fmt.Errorf("--refresh must be positive, not %s", o.app.Refresh)
	}
	if o.width < 1 || o.height < 1 {
		return fmt.Errorf("a frame of %d×%d cannot be drawn", o.width, o.height)
	}
	if o.snapshot != "" && o.plain {
		return errors.New("--snapshot prints one frame and --plain every change: choose one")
	}
	if o.id != "" && o.snapshot == "" {
		return errors.New("--id says which one --snapshot shows, and there is no --snapshot")
	}
	if o.snapshot != "" {
		o.app.View = screen.View(o.snapshot)
		o.app.Theme.Plain = true
	}
	return nil
}

// darkBackground reads COLORFGBG, which some terminals set. Without it the background counts as dark until the
// terminal answers.
func darkBackground(value string) bool {
	parts := strings.Split(value, ";")
	last := parts[len(parts)-1]
	return last != "7" && last != "15"
}

func lookup(environ []string, name string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// version may be set by the linker (-X main.version=…).
var version string

func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}

// openBroker returns a reader of the management interface, nil if none is configured, and a function that closes it.
func openBroker(cfg *config.Config) (monitor.BrokerReader, func(), error) {
	if cfg.MessageQueue.ManagementURL == "" {
		return nil, func() {}, nil
	}
	client, vhost, err := broker.OpenManagement(broker.Configured(cfg, ""), managementTimeout)
	if err != nil {
		return nil, nil, err
	}
	return monitor.NewManagementReader(client, vhost), client.Close, nil
}

// vhostOf is the virtual host of an AMQP URL, "/" by default.
func vhostOf(address string) string {
	if vhost, err := broker.VHostOf(address); err == nil && vhost != "" {
		return vhost
	}
	return "/"
}
