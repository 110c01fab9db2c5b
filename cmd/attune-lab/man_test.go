package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/manual"
)

var manualPath = filepath.Join("..", "..", "docs", "man", "attune-lab.1")

// TestTheManualPageIsThatOfTheCommands keeps docs/man/attune-lab.1 equal to the commands.
func TestTheManualPageIsThatOfTheCommands(t *testing.T) {
	t.Parallel()
	page := manualPage()
	if *update {
		require.NoError(t, os.WriteFile(manualPath, []byte(page), 0o644))
	}
	written, err := os.ReadFile(manualPath)
	require.NoError(t, err)
	require.Equal(t, page, string(written), "run `go test ./cmd/attune-lab -run ManualPage -update`")
	require.Contains(t, page, `.SS "attune\-lab stack up"`)
}

// The formatter of manual pages has no warning.
func TestManReadsTheManualPage(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff to read the page with")
	}
	out, err := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z", manualPath).CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(out))
}

// manualPage is the manual page, with every command and flag.
func manualPage() string {
	root := newRootCommand(&app{})
	var b strings.Builder
	b.WriteString(`.\" Made from the commands of the program; do not edit.
.TH ATTUNE\-LAB 1 "" "attune" "User Commands"
.SH NAME
attune\-lab \- try, practise, measure and rehearse Attune on private servers
.SH SYNOPSIS
.B attune\-lab
.I command
.RI [ argument ...]
.RI [ flag ...]
.SH DESCRIPTION
`)
	manual.Text(&b, root.Long)
	b.WriteString(".SH OPTIONS\nEvery command has these flags.\n")
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { manual.Flag(&b, f) })
	b.WriteString(".SH COMMANDS\n")
	manual.Commands(&b, root)
	b.WriteString(`.SH ENVIRONMENT
.TP
.B DEMO_SECONDS
How long the demo runs without a terminal, 45 by default.
.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage, 3 refused, 4 a server is unreachable.
.SH SEE ALSO
.BR attune\-executor (1),
.BR attune\-tui (1)
`)
	return b.String()
}
