package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/attune-go/attune/tui/keymap"
)

// manual is the manual page, with the flags and keys of the program.
func manual() string {
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
	b.WriteString(`.\" <!-- keys -->` + "\n" + keymap.Roff() + `.\" <!-- /keys -->
.SH FILES
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
	line := `\fB\-\-` + keymap.Escape(f.Name) + `\fR`
	if f.Shorthand != "" {
		line = `\fB\-` + f.Shorthand + `\fR, ` + line
	}
	if name != "" {
		line += ` \fI` + keymap.Escape(name) + `\fR`
	}
	if f.DefValue != "" && f.DefValue != "false" {
		usage += " (default " + f.DefValue + ")"
	}
	return ".TP\n" + line + "\n" + keymap.Escape(usage) + "\n"
}
