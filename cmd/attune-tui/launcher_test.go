package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/settings"
)

// settingsFile makes the settings of an operator and names their folder to the
// program.
func settingsFile(t *testing.T, text string) (variable string) {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "attune"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "attune", "tui.yaml"), []byte(text), 0o600))
	return "XDG_CONFIG_HOME=" + home
}

// launcherOf makes a launcher of flags, environment and settings.
func launcherOf(t *testing.T, environ []string, args ...string) *launcher {
	t.Helper()
	opts, err := parse(args, environ)
	require.NoError(t, err)
	file, err := settings.Load(settings.Path(environ))
	require.NoError(t, err)
	return &launcher{opts: opts, environ: environ, file: file}
}

const threeContexts = `
default_context: staging
theme: mono
refresh: 7s
contexts:
  prod-eu:
    database_url: postgresql://u:secret@db.prod/attune
    broker_url: amqps://u:secret@mq.prod/attune
    schema: attune_eu
    read_only: true
    protected: true
    colour: red
  staging:
    database_url: ${STAGING_DB}
    management_url: http://u:secret@mq.staging:15672
  lost:
    database_url: file:nowhere
`

func TestWhichInstallationIsShownFirst(t *testing.T) {
	t.Parallel()
	file := settingsFile(t, threeContexts)
	staging := "STAGING_DB=postgresql://db.staging/attune"
	fromEnvironment := "ATTUNE__DATABASE__URL=postgresql://db.env/attune"
	config := filepath.Join(t.TempDir(), "attune.yaml")
	require.NoError(t, os.WriteFile(config, []byte("database:\n  url: postgresql://db.file/attune\n"), 0o600))
	for _, test := range []struct {
		environ              []string
		args                 []string
		name, database, from string
	}{
		{
			[]string{file, fromEnvironment},
			[]string{"--context", "prod-eu"},
			"prod-eu",
			"postgresql://u:secret@db.prod/attune", "--context, ",
		},
		{
			[]string{file, staging, fromEnvironment},
			nil, "db.env", "postgresql://db.env/attune",
			"environment ATTUNE__DATABASE__URL",
		},
		{
			[]string{file, staging},
			[]string{"--config", config},
			"db.file", "postgresql://db.file/attune",
			config + ":2",
		},
		{
			[]string{file, staging, "ATTUNE_CONFIG=" + config},
			nil, "db.file", "postgresql://db.file/attune",
			config + ":2",
		},
		{[]string{file, staging}, nil, "staging", "postgresql://db.staging/attune", "default_context of "},
		{nil, nil, "localhost", "", "the defaults"},
	} {
		i, err := launcherOf(t, test.environ, test.args...).first(t.Context())
		require.NoError(t, err, test.args)
		require.Equal(t, test.name, i.name)
		require.Contains(t, i.from, test.from)
		if test.database != "" {
			require.Equal(t, test.database, i.cfg.Database.URL)
		}
	}
}

func TestTheServersOfAContextAreItsOwnOnly(t *testing.T) {
	t.Parallel()
	environ := []string{
		settingsFile(t, threeContexts), "ATTUNE__MESSAGE_QUEUE__URL=amqp://other", "ATTUNE__DATABASE__SCHEMA=other",
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=http://other", "ATTUNE__EXECUTOR__SCHEDULED_TIMEOUT=77",
		"STAGING_DB=postgresql://h/d",
	}
	s := launcherOf(t, environ)
	i, err := s.named("staging", "--context")
	require.NoError(t, err)
	require.Empty(t, i.cfg.MessageQueue.URL, "no address of another installation is used")
	require.Equal(t, "http://u:secret@mq.staging:15672", i.cfg.MessageQueue.ManagementURL)
	require.Equal(t, "attune", i.cfg.Database.Schema)
	require.Equal(t, 77*time.Second, i.cfg.Executor.ScheduledTimeout, "other settings are as configured")
	_, err = openLink(t.Context(), i.cfg)
	require.ErrorIs(t, err, errNoBroker)
	i, err = s.named("prod-eu", "--context")
	require.NoError(t, err)
	require.Equal(t, "https://u:secret@mq.prod:15671", i.cfg.MessageQueue.ManagementURL,
		"it follows from the broker's address")
	require.Equal(t, "attune_eu", i.cfg.Database.Schema)
	i, err = launcherOf(t, []string{settingsFile(t,
		"contexts: {a: {database_url: postgresql://db/x, broker_url: 'amqp://u:secret@mq', management_url: http://proxy}}")}).
		named("a", "--context")
	require.NoError(t, err)
	require.Equal(t, "http://u:secret@proxy", i.cfg.MessageQueue.ManagementURL, "it has the broker's login")
}

func TestAContextThatCannotBeOpenedIsOneLine(t *testing.T) {
	t.Parallel()
	file := settingsFile(t, threeContexts)
	for name, want := range map[string]string{
		"staging": "database_url: the environment variable STAGING_DB is not set",
		"lost":    "no such file",
		"prod-ue": "did you mean prod-eu?",
	} {
		code, out, err := call(t, []string{file}, "--context", name, "--snapshot", "overview")
		require.Equal(t, exitUsage, code)
		require.Empty(t, out)
		require.Contains(t, err, want)
		require.Equal(t, 1, strings.Count(err, "\n"), err)
	}
	code, _, err := call(t, []string{settingsFile(t, "contxts: {}")}, "--snapshot", "overview")
	require.Equal(t, exitUsage, code)
	require.Contains(t, err, "tui.yaml:1: contxts is not a known key; did you mean contexts?")
}

func TestFlagsWinOverTheFile(t *testing.T) {
	t.Parallel()
	environ := []string{settingsFile(t, threeContexts+"ascii: true\nmouse: false\n")}
	s := launcherOf(t, environ)
	s.opts.follow(s.file)
	require.Equal(t, "mono", s.opts.app.Theme.Name)
	require.Equal(t, 7*time.Second, s.opts.app.Refresh)
	require.True(t, s.opts.app.Theme.ASCII)
	require.True(t, s.opts.noMouse)
	s = launcherOf(t, environ, "--theme", "light", "--refresh", "1s", "--ascii=false", "--no-mouse=false")
	s.opts.follow(s.file)
	require.Equal(t, "light", s.opts.app.Theme.Name)
	require.Equal(t, time.Second, s.opts.app.Refresh)
	require.False(t, s.opts.app.Theme.ASCII)
	require.False(t, s.opts.noMouse)
}

func TestContextsAreListedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	environ := []string{settingsFile(t, threeContexts)}
	code, out, err := call(t, environ, "--contexts")
	require.Zero(t, code, err)
	require.NotContains(t, out, "secret")
	for _, want := range []string{
		"prod-eu  RO protected", "postgresql://u:***@db.prod/attune", "staging  RW default",
		"${STAGING_DB}", "file:nowhere",
	} {
		require.Contains(t, out, want)
	}
	code, out, err = call(t, environ, "--contexts", "-o", "json")
	require.Zero(t, code, err)
	var entries []contextEntry
	require.NoError(t, json.Unmarshal([]byte(out), &entries))
	require.Len(t, entries, 3)
	require.NotContains(t, out, "secret")
	require.True(t, entries[0].Protected)
	require.Equal(t, "http://u:***@mq.staging:15672", entries[1].Management)

	for _, test := range []struct{ variable, want string }{
		{"HOME=/nonexistent", "/nonexistent/.config/attune/tui.yaml does not exist."},
		{"LANG=C", "neither XDG_CONFIG_HOME nor HOME"},
		{settingsFile(t, "theme: dark"), "tui.yaml names none."},
	} {
		code, out, _ = call(t, []string{test.variable}, "--contexts")
		require.Zero(t, code)
		require.Contains(t, out, test.want)
	}
}

func TestAContextIsShownByItsName(t *testing.T) {
	url := testkit.Database(t)
	testkit.Worker(t, testkit.OpenStore(t, url), "worker-b")
	secret := filepath.Join(t.TempDir(), "db")
	require.NoError(t, os.WriteFile(secret, []byte(url+"\n"), 0o600))
	file := settingsFile(t,
		"contexts:\n  prod-eu:\n    database_url: file:"+secret+"\n    read_only: true\n    protected: true\n")
	code, out, err := call(t, append([]string{file}, noServers...), "--context", "prod-eu", "--snapshot", "workers",
		"--width", "100")
	require.Zero(t, code, err)
	require.Contains(t, out, "ATTUNE prod-eu! RO  PG ●")
	require.Contains(t, out, "worker-b")

	x := openTerminalIn(t, append([]string{file}, noServers...), "--context", "prod-eu", "--view", "workers")
	x.shows("ATTUNE prod-eu! RO")
	x.shows("worker-b")
	x.press("A")
	x.shows("the context prod-eu is read_only")
}

func TestKeysAndBookmarksOfTheOperatorWork(t *testing.T) {
	url := testkit.Database(t)
	testkit.Worker(t, testkit.OpenStore(t, url), "worker-c")
	file := settingsFile(t,
		"keys:\n  help: f1\n  pause: [f5]\nbookmarks:\n  mine: {view: workers, filter: worker-c, key: m}\n")
	x := openTerminalIn(t, []string{file, "ATTUNE__DATABASE__URL=" + url, noServers[1]})
	x.shows("ATTUNE")
	x.press("'", "m")
	x.shows("▶")
	x.shows("worker-c")
	x.press("F5")
	x.shows("FROZEN")
}

func TestContextsAreSwitchedAlsoFromOneThatIsDown(t *testing.T) {
	t.Parallel()
	var urls []string
	for _, name := range []string{"worker-one", "worker-two"} {
		url := testkit.Database(t)
		testkit.Worker(t, testkit.OpenStore(t, url), name)
		if testkit.Adopted() {
			replicaRuns(t, url)
		}
		urls = append(urls, url)
	}
	file := settingsFile(t, "default_context: one\ncontexts:\n  one: {database_url: '"+urls[0]+"'}\n"+
		"  two: {database_url: '"+urls[1]+"', protected: true}\n  down: {database_url: 'postgres://x@127.0.0.1:1/x'}\n")
	x := openTerminalIn(t, []string{file}, "--view", "workers")
	x.shows("worker-one")
	switchTo := func(name string) {
		x.press(":")
		x.shows(":")
		x.call("send-keys", "-l", "ctx "+name)
		x.press("Enter")
	}
	switchTo("two")
	x.shows("ATTUNE two!")
	x.shows("worker-two")
	x.hides("worker-one")
	switchTo("down")
	x.shows("ATTUNE down")
	x.shows("PG ✗ down")
	switchTo("one")
	x.shows("worker-one")
	x.shows("ATTUNE one RW")
}
