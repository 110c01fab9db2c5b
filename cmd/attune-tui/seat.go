package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/devstack"
	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/settings"
)

// seat is what the program was told: flags, environment and files, from which
// every installation is opened that the operator turns to.
type seat struct {
	opts    options
	environ []string
	file    *settings.Settings
}

// installation is one to open, and who named it.
type installation struct {
	name    string
	context settings.Context // of tui.yaml; the zero value is none
	cfg     *config.Config
	from    string
	unnamed bool // nobody named servers
}

// first decides which installation is shown first:
//
//  1. the context that --context names
//  2. what the environment or the configuration of the executor name
//  3. the default context of tui.yaml
//  4. the private stack that runs in the current folder
//  5. the defaults
func (s *seat) first(ctx context.Context) (*installation, error) {
	if s.opts.context != "" {
		return s.named(s.opts.context, "--context")
	}
	cfg, err := config.Load(s.opts.config, s.environ)
	if err != nil {
		return nil, err
	}
	if from := namedBy(cfg); from != "" {
		return &installation{name: contextName(cfg.Database.URL), cfg: cfg, from: from}, nil
	}
	if s.file.DefaultContext != "" {
		return s.named(s.file.DefaultContext, "default_context of "+s.file.Path)
	}
	if stack := devstack.Variables(ctx, devstack.DirDefault); len(stack) > 0 {
		if cfg, err = config.Load(s.opts.config, append(slices.Clone(s.environ), stack...)); err != nil {
			return nil, err
		}
		return &installation{name: contextName(cfg.Database.URL), cfg: cfg,
			from: "the private stack in " + devstack.DirDefault}, nil
	}
	return &installation{name: contextName(cfg.Database.URL), cfg: cfg, from: "the defaults, as nothing names servers",
		unnamed: true}, nil
}

// namedBy says where the configuration names servers; nothing when it does not.
func namedBy(cfg *config.Config) string {
	for _, key := range []string{"database.url", "message_queue.url"} {
		if from := cfg.Source(key); from != "default" {
			return from
		}
	}
	return ""
}

// named is a context of tui.yaml. Its servers are those of the context and no
// others: an address that it does not name is not taken from the environment or
// the configuration, which may name another installation's. All else holds as
// configured.
func (s *seat) named(name, from string) (*installation, error) {
	c, err := s.file.Find(name)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(s.opts.config, s.environ)
	if err != nil {
		return nil, err
	}
	if cfg.Database.URL, err = c.Database.Address(s.environ); err != nil {
		return nil, err
	}
	cfg.Database.Schema = config.Default().Database.Schema
	if c.Schema != "" {
		cfg.Database.Schema = c.Schema
	}
	if cfg.MessageQueue.URL, err = c.Broker.Address(s.environ); err != nil {
		return nil, err
	}
	if cfg.MessageQueue.ManagementURL, err = c.Management.Address(s.environ); err != nil {
		return nil, err
	}
	if !c.Management.Given() {
		cfg.MessageQueue.ManagementURL = config.DeriveManagement(cfg.MessageQueue.URL)
	}
	return &installation{name: c.Name, context: c, cfg: cfg, from: from + ", " + c.At}, nil
}

// open prepares an installation: sessions that only read, and those that act
// where that is allowed. It waits for no server.
func (s *seat) open(ctx context.Context, i *installation) (*app.Installation, error) {
	source, closeSource, err := open(ctx, i.cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.name, err)
	}
	to := &app.Installation{
		Name: i.name, Colour: i.context.Colour, Protected: i.context.Protected, Source: source, Close: closeSource,
		Origin: app.Origin{
			Database: config.MaskURL(i.cfg.Database.URL), Broker: config.MaskURL(i.cfg.MessageQueue.ManagementURL),
			NamedBy: i.from, Unnamed: i.unnamed, Settings: s.file.Path,
			Schema: i.cfg.Database.Schema,
			Queues: queuePages(i.cfg.MessageQueue.ManagementURL, vhostOf(i.cfg.MessageQueue.URL)),
		},
	}
	switch {
	case s.opts.readOnly:
		to.ReadOnly = "the dashboard was started with --read-only"
	case i.context.ReadOnly:
		to.ReadOnly = "the context " + i.name + " is read_only in " + s.file.Path
	case s.opts.snapshot != "" || s.opts.plain:
		to.ReadOnly = "what is printed acts on nothing"
	default:
		acts, closeActs, err := openActs(ctx, i, source)
		if err != nil {
			closeSource()
			return nil, err
		}
		to.Acts = acts
		to.Close = func() {
			closeActs()
			closeSource()
		}
	}
	return to, nil
}

// connect opens a context that the operator turns to.
func (s *seat) connect(ctx context.Context, name string) (*app.Installation, error) {
	i, err := s.named(name, ":ctx")
	if err != nil {
		return nil, err
	}
	return s.open(ctx, i)
}

// shown are the options of a dashboard that shows an installation first.
func (s *seat) shown(first *app.Installation) options {
	o := s.opts
	o.app.Context, o.app.Colour, o.app.Protected = first.Name, first.Colour, first.Protected
	o.app.ReadOnly, o.app.Acts, o.app.Close = first.ReadOnly, first.Acts, first.Close
	o.app.Origin = first.Origin
	o.app.Contexts, o.app.Connect = s.file.Names(), s.connect
	o.app.Keys, o.app.Environ = s.file.Keymap, s.environ
	o.app.Bookmarks = s.file.Bookmarks
	o.app.Exports = stateFolder("exports")
	o.app.Clipboard = clipboard(os.Stdout, export.WithinOf(s.environ))
	if seen := stateFolder("hints-seen"); seen != "" && o.snapshot == "" {
		o.app.Hints, o.app.HintsEnded = !s.file.NoHints && !exists(seen), func() error { return remember(seen) }
	}
	o.app.SaveBookmark = func(b settings.Bookmark) error { return settings.Save(s.file.Path, b) }
	return o
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// remember makes an empty file, whose being there says that something was shown.
func remember(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// clipboard asks the terminal to take a text, in one write to where the frames go.
func clipboard(terminal io.Writer, within export.Within) func(text string) error {
	return func(text string) error {
		sequence, err := export.Clipboard(text, within)
		if err != nil {
			return err
		}
		return write(terminal, []byte(sequence))
	}
}

// queuePages is where the management interface shows the queues of a virtual host,
// up to their names and without a login; empty where it is not known.
func queuePages(management, vhost string) string {
	u, err := url.Parse(management)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + "/#/queues/" + url.PathEscape(vhost) + "/"
}

// errNoBroker says that a context names no broker.
var errNoBroker = errors.New("this context names no broker_url, and the broker has the queues: nothing was done")

// contextName says which installation this is, by the host of its database.
func contextName(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || u.Hostname() == "" {
		return "local"
	}
	return u.Hostname()
}
