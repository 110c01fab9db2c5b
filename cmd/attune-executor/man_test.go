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

var manualPath = filepath.Join("..", "..", "docs", "man", "attune-executor.1")

// TestTheManualPageIsThatOfTheCommands keeps docs/man/attune-executor.1 equal to the commands.
func TestTheManualPageIsThatOfTheCommands(t *testing.T) {
	t.Parallel()
	page := manualPage()
	if *update {
		require.NoError(t, os.WriteFile(manualPath, []byte(page), 0o644))
	}
	written, err := os.ReadFile(manualPath)
	require.NoError(t, err)
	require.Equal(t, page, string(written), "run `go test ./cmd/attune-executor -run ManualPage -update`")
	for _, want := range []string{
		`.SS "attune\-executor serve"`, `.SS "attune\-executor dlq requeue`, `\fB\-\-beside\fR`,
		`\fB\-o\fR, \fB\-\-output\fR`,
	} {
		require.Contains(t, page, want)
	}
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
.TH ATTUNE\-EXECUTOR 1 "" "attune" "User Commands"
.SH NAME
attune\-executor \- engine, worker and command line of Attune
.SH SYNOPSIS
.B attune\-executor
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
	b.WriteString(`.SH FILES
.TP
.I /etc/attune/attune.yaml
The configuration of the services of the Debian package. Other programs read the file that
.B \-\-config
or
.B ATTUNE_CONFIG
names.
.SH ENVIRONMENT
.TP
.B ATTUNE_CONFIG
The configuration file, unless
.B \-\-config
names one.
.TP
.B ATTUNE__SECTION__KEY
Overrides a key of the configuration, such as
.BR ATTUNE__DATABASE__URL .
.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage or configuration, 3 refused, 4 a server is unreachable.
.SH SEE ALSO
.BR attune\-tui (1),
.BR attune\-lab (1)
`)
	return b.String()
}
