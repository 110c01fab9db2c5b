package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/settings"
)

// write makes a settings file that only its owner can read.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tui.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(t *testing.T, text string) *settings.Settings {
	t.Helper()
	s, err := settings.Load(write(t, text))
	require.NoError(t, err)
	return s
}

func TestThePathOfTheFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		environ []string
		want    string
	}{
		{[]string{"XDG_CONFIG_HOME=/c", "HOME=/h"}, "/c/attune/tui.yaml"},
		{[]string{"HOME=/h"}, "/h/.config/attune/tui.yaml"},
		{[]string{"XDG_CONFIG_HOME=relative", "HOME=/h"}, "/h/.config/attune/tui.yaml"},
		{[]string{"XDG_CONFIG_HOME=", "HOME=/h"}, "/h/.config/attune/tui.yaml"},
		{nil, ""},
	} {
		require.Equal(t, test.want, settings.Path(test.environ), test.environ)
	}
}

func TestWithoutAFileNothingIsSet(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/nonexistent/attune/tui.yaml", "/dev/null/attune/tui.yaml"} {
		s, err := settings.Load(path)
		require.NoError(t, err, path)
		require.False(t, s.Found)
		require.Empty(t, s.Contexts)
	}
	s := load(t, "# nothing but a comment\n")
	require.True(t, s.Found)
	require.Empty(t, s.Contexts)
}

func TestAFileWithEverything(t *testing.T) {
	t.Parallel()
	s := load(t, `
default_context: prod-eu
theme: colour-blind
refresh: 5
ascii: true
mouse: false
hints: false
contexts:
  staging: &base
    database_url: postgresql://u:secret@db.staging/attune
    broker_url: amqps://u:secret@mq.staging/attune
    management_url: https://u:secret@mq.staging:15671
  prod-eu:
    database_url: ${PROD_DB}
    broker_url: file:mq
    schema: attune_eu
    read_only: true
    protected: true
    colour: red
`)
	require.Equal(t, "prod-eu", s.DefaultContext)
	require.Equal(t, "colour-blind", s.Theme)
	require.Equal(t, 5*time.Second, s.Refresh)
	require.True(t, s.ASCII)
	require.True(t, s.NoMouse)
	require.True(t, s.NoHints)
	require.Equal(t, []string{"staging", "prod-eu"}, s.Names())
	prod, err := s.Find("prod-eu")
	require.NoError(t, err)
	require.True(t, prod.ReadOnly)
	require.True(t, prod.Protected)
	require.Equal(t, "red", prod.Colour)
	require.Equal(t, "attune_eu", prod.Schema)
	require.False(t, prod.Management.Given())
	require.True(t, strings.HasSuffix(prod.At, "tui.yaml:13"), prod.At)
	require.Empty(t, s.Warnings, "no other user can read it")
}

func TestEveryMistakeIsOneLineWithItsPlace(t *testing.T) {
	t.Parallel()
	context := "contexts:\n  a:\n    database_url: postgresql://h/d\n"
	for text, want := range map[string]string{
		"contxts: {}":                  "tui.yaml:1: contxts is not a known key; did you mean contexts?",
		"nothing: 1":                   "tui.yaml:1: nothing is not a known key; known are ascii,",
		"theme: drk":                   "tui.yaml:1: drk is not a theme; did you mean dark?",
		"\nmouse: maybe":               "tui.yaml:2: mouse must be true or false",
		"mouse: [true]":                "tui.yaml:1: mouse must be true or false",
		"refresh: never":               "tui.yaml:1: refresh must be a duration above zero, such as 2s",
		"refresh: -2s":                 "tui.yaml:1: refresh must be a duration above zero",
		"theme: 7":                     "tui.yaml:1: theme must be a text",
		"theme: dark\ntheme: light":    "tui.yaml:2: theme stands twice; first in line 1",
		"- a":                          "tui.yaml:1: the file is a section: write its keys below it",
		"contexts: [a]":                "tui.yaml:1: contexts is a section",
		"spool: off":                   "tui.yaml:1: spool is not a known key",
		"contexts:\n  a: x":            "tui.yaml:2: context a is a section",
		"contexts:\n  a: {}":           "tui.yaml:2: context a has no database_url",
		"contexts:\n  a b: {}":         "tui.yaml:2: the name of a context must not hold spaces",
		"contexts:\n  \"a\\e[2J\": {}": "tui.yaml:2: the name of a context must not hold spaces or control",

		context +
			"    databse_url: x": "tui.yaml:4: databse_url is not a known key; did you mean database_url?",
		context + "    colour: pink": "tui.yaml:4: pink is not a colour; known are blue,",
		context +
			"    broker_url: http://h": "tui.yaml:4: broker_url must be a URL like amqp://user:password@host:port",
		context + "    management_url: secretword":   "tui.yaml:4: management_url must be a URL like http://",
		context + "    broker_url: amqp://u:${PW}@h": "tui.yaml:4: broker_url must be one reference such as ${NAME}",
		context + "    broker_url: ${A B}":           "tui.yaml:4: broker_url must be one reference",
		context + "    broker_url: 'file:'":          "tui.yaml:4: broker_url must be file: and a path",
		context + "    broker_url: ''":               "tui.yaml:4: broker_url must be a text",
		context + "    protected: 1":                 "tui.yaml:4: protected must be true or false",
		context + "  a:\n    database_url: ${X}":     "tui.yaml:4: a stands twice; first in line 2",
		context +
			"default_context: prod": "tui.yaml:4: default_context: there is no context prod; known are a",

		"default_context: stagin\n" + context +
			"  staging:\n    database_url: ${X}": "tui.yaml:1: default_context: there is no context stagin; did you mean staging?",
		"theme: [": "tui.yaml: line 1: did not find expected node content",
	} {
		_, err := settings.Load(write(t, text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n", text)
		require.NotContains(t, err.Error(), "secretword", text)
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	path := write(t, "theme: drk\nascii:\ncontexts:\n  a: {databse_url: x, protected: 1}\nkeys:\n  freez: x\n")
	_, err := settings.Load(path)
	require.EqualError(t, err, strings.ReplaceAll(`tui.yaml:1: drk is not a theme; did you mean dark?
tui.yaml:2: ascii must be true or false
tui.yaml:4: context a has no database_url
tui.yaml:4: databse_url is not a known key; did you mean database_url?
tui.yaml:4: protected must be true or false
tui.yaml:6: freez is not an action; did you mean freeze?`, "tui.yaml", path))
}

func TestAnUnreadableFileIsAnError(t *testing.T) {
	t.Parallel()
	_, err := settings.Load(t.TempDir())
	require.ErrorContains(t, err, "read the settings of the dashboard")
}

func TestReferencesAreFollowedWhenTheyAreNeeded(t *testing.T) {
	t.Parallel()
	path := write(t, `
contexts:
  a:
    database_url: ${DB}
    broker_url: file:mq
    management_url: http://u:secret@h:15672
`)
	s, err := settings.Load(path)
	require.NoError(t, err, "nothing was looked up")
	a := s.Contexts[0]
	_, err = a.Database.Address([]string{"DB="})
	require.ErrorContains(t, err, "tui.yaml:4: database_url: the environment variable DB is not set")
	_, err = a.Database.Address([]string{"DB=topsecret"})
	require.ErrorContains(t, err, "database_url: what it refers to must be a URL like postgresql://")
	require.NotContains(t, err.Error(), "topsecret")
	address, err := a.Database.Address([]string{"DB=postgresql://x/y"})
	require.NoError(t, err)
	require.Equal(t, "postgresql://x/y", address)

	_, err = a.Broker.Address(nil)
	require.ErrorContains(t, err, "broker_url")
	require.ErrorContains(t, err, "no such file")
	secret := filepath.Join(filepath.Dir(path), "mq")
	require.NoError(t, os.WriteFile(secret, []byte("amqp://u:p@h/v\n"), 0o600))
	address, err = a.Broker.Address(nil)
	require.NoError(t, err)
	require.Equal(t, "amqp://u:p@h/v", address)
	require.NoError(t, os.WriteFile(secret, []byte("\n"), 0o600))
	_, err = a.Broker.Address(nil)
	require.ErrorContains(t, err, "is empty")
	require.NoError(t, os.Remove(secret))
	require.NoError(t, os.Mkdir(secret, 0o700))
	_, err = a.Broker.Address(nil)
	require.ErrorContains(t, err, "is no plain file")

	require.Equal(t, "${DB}", a.Database.Show())
	require.Equal(t, "file:mq", a.Broker.Show())
	require.Equal(t, "http://u:***@h:15672", a.Management.Show())
	none, err := settings.Reference{}.Address(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestPasswordsThatOthersCanReadAreWarnedOf(t *testing.T) {
	t.Parallel()
	for text, warned := range map[string]bool{
		"database_url: postgresql://u:p@h/d":                  true,
		"database_url: host=h password=p":                     true,
		"database_url: postgresql://u@h/d":                    false,
		"database_url: ${DB}":                                 false,
		"database_url: file:db\n    broker_url: amqp://u:p@h": true,
	} {
		path := write(t, "contexts:\n  a:\n    "+text+"\n")
		s, err := settings.Load(path)
		require.NoError(t, err)
		require.Empty(t, s.Warnings, text)
		require.NoError(t, os.Chmod(path, 0o640))
		s, err = settings.Load(path)
		require.NoError(t, err)
		if !warned {
			require.Empty(t, s.Warnings, text)
			continue
		}
		require.Len(t, s.Warnings, 1, text)
		require.Contains(t, s.Warnings[0], "chmod 600 "+path)
	}
}

func TestAMissingContextIsNamed(t *testing.T) {
	t.Parallel()
	s := load(t, "contexts:\n  staging:\n    database_url: ${X}\n")
	_, err := s.Find("stagng")
	require.ErrorContains(t, err, "did you mean staging?")
	_, err = s.Find("other")
	require.ErrorContains(t, err, "--contexts lists them")
	s, err = settings.Load("/nonexistent/tui.yaml")
	require.NoError(t, err)
	_, err = s.Find("staging")
	require.ErrorContains(t, err, "/nonexistent/tui.yaml does not exist")
	_, err = (&settings.Settings{}).Find("staging")
	require.ErrorContains(t, err, "neither XDG_CONFIG_HOME nor HOME")
}
