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
	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/settings"
)

// launcher opens installations with the flags, environment and settings of the program.
type launcher struct {
	opts    options
	environ []string
	file    *settings.Settings
}

// installation is an installation to open, and what names it.
type installation struct {
	name    string
	context settings.Context // the zero value means none
	cfg     *config.Config
	from    string
	unnamed bool // nothing names servers
}

// first decides which installation is shown first:
//
//  1. the context that --context names
//  2. what the environment or the configuration of the executor name
//  3. the default context of tui.yaml
//  4. the private stack that runs in the current folder
//  5. the defaults
func (l *launcher) first(ctx context.Context) (*installation, error) {
	if l.opts.context != "" {
		return l.named(l.opts.context, "--context")
	}
	cfg, err := config.Load(l.opts.config, l.environ)
	if err != nil {
		return nil, err
	}
	if from := namedBy(cfg); from != "" {
		return &installation{name: contextName(cfg.Database.URL), cfg: cfg, from: from}, nil
	}
	if l.file.DefaultContext != "" {
		return l.named(l.file.DefaultContext, "default_context of "+l.file.Path)
	}
	if stack := config.PrivateStack(); len(stack) > 0 {
		if cfg, err = config.Load(l.opts.config, append(slices.Clone(l.environ), stack...)); err != nil {
			return nil, err
		}
		return &installation{
			name: contextName(cfg.Database.URL), cfg: cfg,
			from: "the private stack in " + config.PrivateStackDir,
		}, nil
	}
	return &installation{
		name: contextName(cfg.Database.URL), cfg: cfg, from: "the defaults, as nothing names servers",
		unnamed: true,
	}, nil
}

// namedBy is what names the servers in the configuration, or empty.
func namedBy(cfg *config.Config) string {
	for _, key := range []string{"database.url", "message_queue.url"} {
		if from := cfg.Source(key); from != "default" {
			return from
		}
	}
	return ""
}

// named is a context of tui.yaml. It uses only the servers of the context: environment and configuration may name
// another installation. All other settings are those of the configuration.
func (l *launcher) named(name, from string) (*installation, error) {
	c, err := l.file.Find(name)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(l.opts.config, l.environ)
	if err != nil {
		return nil, err
	}
	cfg.Database.Schema = config.Default().Database.Schema
	if c.Schema != "" {
		cfg.Database.Schema = c.Schema
	}
	for key, of := range map[string]struct {
		address   *string
		reference settings.Reference
	}{
		"database.url":                 {&cfg.Database.URL, c.Database},
		"message_queue.url":            {&cfg.MessageQueue.URL, c.Broker},
		"message_queue.management_url": {&cfg.MessageQueue.ManagementURL, c.Management},
	} {
		if *of.address, err = of.reference.Address(l.environ); err != nil {
			return nil, err
		}
		cfg.Reread(key, func() (string, error) { return of.reference.Address(l.environ) })
	}
	if !c.Management.Given() {
		cfg.MessageQueue.ManagementURL = config.DeriveManagement(cfg.MessageQueue.URL)
		cfg.Reread("message_queue.management_url", func() (string, error) { return c.Broker.Address(l.environ) })
	}
	cfg.ShareLogin()
	return &installation{name: c.Name, context: c, cfg: cfg, from: from + ", " + c.At}, nil
}

// open prepares an installation without waiting for a server.
func (l *launcher) open(ctx context.Context, i *installation) (*app.Installation, error) {
	source, closeSource, err := open(ctx, i.cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.name, err)
	}
	to := &app.Installation{
		Name: i.name, Colour: i.context.Colour, Protected: i.context.Protected, Source: source, Close: closeSource,
		Origin: app.Origin{
			Database: config.MaskURL(i.cfg.Database.URL), Broker: config.MaskURL(i.cfg.MessageQueue.ManagementURL),
			NamedBy: i.from, Unnamed: i.unnamed, Settings: l.file.Path,
			Schema: i.cfg.Database.Schema,
			Queues: queuePages(i.cfg.MessageQueue.ManagementURL, vhostOf(i.cfg.MessageQueue.URL)),
		},
	}
	switch {
	case l.opts.readOnly:
		to.ReadOnly = "the dashboard was started with --read-only"
	case i.context.ReadOnly:
		to.ReadOnly = "the context " + i.name + " is read_only in " + l.file.Path
	case l.opts.snapshot != "" || l.opts.plain:
		to.ReadOnly = "printed output cannot act"
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

// shown are the options of the dashboard for the first installation.
func (l *launcher) shown(first *app.Installation) options {
	o := l.opts
	o.app.Context, o.app.Colour, o.app.Protected = first.Name, first.Colour, first.Protected
	o.app.ReadOnly, o.app.Acts, o.app.Close = first.ReadOnly, first.Acts, first.Close
	o.app.Origin = first.Origin
	o.app.Contexts = l.file.Names()
	o.app.Connect = func(ctx context.Context, name string) (*app.Installation, error) {
		i, err := l.named(name, ":ctx")
		if err != nil {
			return nil, err
		}
		return l.open(ctx, i)
	}
	o.app.Keys, o.app.Environ = l.file.Keymap, l.environ
	o.app.Bookmarks = l.file.Bookmarks
	o.app.Exports = stateFolder("exports")
	o.app.Clipboard = clipboard(os.Stdout, export.WithinOf(l.environ))
	if seen := stateFolder("hints-seen"); seen != "" && o.snapshot == "" {
		_, err := os.Stat(seen)
		o.app.Hints = !l.file.NoHints && err != nil
		o.app.HintsEnded = func() error {
			if err := os.MkdirAll(filepath.Dir(seen), 0o700); err != nil {
				return err
			}
			return os.WriteFile(seen, nil, 0o600)
		}
	}
	o.app.SaveBookmark = func(b settings.Bookmark) error { return settings.Save(l.file.Path, b) }
	return o
}

// clipboard asks the terminal to take a text, in one write between frames.
func clipboard(terminal io.Writer, within export.Within) func(text string) error {
	return func(text string) error {
		sequence, err := export.Clipboard(text, within)
		if err != nil {
			return err
		}
		return write(terminal, []byte(sequence))
	}
}

// queuePages is the address of the queues in the management interface, without a login and the name of a queue; empty
// if unknown.
func queuePages(management, vhost string) string {
	u, err := url.Parse(management)
	if err != nil || u.Host == "" {
		return ""
	}
	first, _, _ := strings.Cut(u.Host, ",")
	return u.Scheme + "://" + first + strings.TrimSuffix(u.Path, "/") + "/#/queues/" + url.PathEscape(vhost) + "/"
}

// errNoBroker refuses an act that needs the broker.
var errNoBroker = errors.New("this context names no broker_url, and the broker has the queues: nothing was done")

// contextName names an installation by the host of its database.
func contextName(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || u.Hostname() == "" {
		return "local"
	}
	return u.Hostname()
}
