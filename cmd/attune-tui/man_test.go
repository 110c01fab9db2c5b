package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/manual"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

var update = flag.Bool("update", false, "write the manual page anew")

func TestTheManualPageIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "man", "attune-tui.1")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(wholePage()), 0o644))
		return
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, wholePage(), string(page), "run the test with -update")
	testkit.Formats(t, path)
}

func TestTheManualPageHasEveryFlagAndKey(t *testing.T) {
	t.Parallel()
	page := wholePage()
	for _, want := range []string{`\-\-plain`, `\-\-context`, `\fB\-o\fR, \fB\-\-output\fR`, `\fB\e\fR`, `\fB\(aq\fR`} {
		require.Contains(t, page, want)
	}
	for _, b := range keymap.BuiltIn.All() {
		require.Contains(t, page, manual.Escape(b.Help))
	}
}

// wholePage is the manual page, with the flags and keys of the program.
func wholePage() string {
	var b strings.Builder
	b.WriteString(`.\" Made from the flags and the key map of the program; do not edit.
.TH ATTUNE\-TUI 1 "" "attune" "User Commands"
.SH NAME
attune\-tui \- live dashboard of an Attune installation in a terminal
.SH SYNOPSIS
.B attune\-tui
.RI [ flags ]
.SH DESCRIPTION
Shows queues, executions, workers, dead letters and all else of an installation live, and acts on them: what is chosen is planned,
asked about, run, and answered with a receipt. It starts and stays usable while the database or the broker is down.
.SH OPTIONS
`)
	flags(&options{}).VisitAll(func(f *pflag.Flag) { b.WriteString(manFlag(f)) })
	b.WriteString(".SH KEYS\nKeys that work outside dialogs and text inputs; \\fB?\\fR shows those of the open view, \\fB:\\fR takes commands.\n")
	b.WriteString(manual.Keys() + `.SH FILES
.TP
.I $XDG_CONFIG_HOME/attune/tui.yaml
Contexts, look, keys and bookmarks; below
.I ~/.config
where the variable is not set.
.TP
.I $XDG_CONFIG_HOME/attune/bookmarks.yaml
Bookmarks that were saved from the dashboard.
.SH ENVIRONMENT
.TP
.B ATTUNE_CONFIG
The executor's configuration file.
.TP
.B ATTUNE__DATABASE__URL, ATTUNE__MESSAGE_QUEUE__URL
The servers, before those of
.B default_context
and after those of
.BR \-\-context .
.TP
.B NO_COLOR
Drops every colour.
.TP
.B COLORFGBG
Says to the theme auto whether the background is light, where the terminal does not.
.TP
.B TERM, COLORTERM
Say how many colours the terminal has. With
.B TERM=dumb
it prints as with
.BR \-\-plain .
.TP
.B LC_ALL, LC_CTYPE, LANG
A locale that is not UTF-8 draws as
.B \-\-ascii
does.
.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage, 3 schema too old or too new, 4 no source answered (\fB\-\-snapshot\fR).
.SH SEE ALSO
docs/dashboard.md
`)
	return b.String()
}

func manFlag(f *pflag.Flag) string {
	name, usage := pflag.UnquoteUsage(f)
	line := `\fB\-\-` + manual.Escape(f.Name) + `\fR`
	if f.Shorthand != "" {
		line = `\fB\-` + f.Shorthand + `\fR, ` + line
	}
	if name != "" {
		line += ` \fI` + manual.Escape(name) + `\fR`
	}
	if f.DefValue != "" && f.DefValue != "false" {
		usage += " (default " + f.DefValue + ")"
	}
	return ".TP\n" + line + "\n" + manual.Escape(usage) + "\n"
}
