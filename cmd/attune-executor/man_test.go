package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/manual"
	"github.com/attune-go/attune/lab/testkit"
)

func TestTheManualPageIsThatOfTheCommands(t *testing.T) {
	t.Parallel()
	page := manual.Page(newRootCommand(&app{}), "engine, worker and command line of Attune", `.SH FILES
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
	for _, want := range []string{
		`.SS "attune\-executor serve"`, `.SS "attune\-executor dlq requeue`, `\fB\-\-beside\fR`,
		`\fB\-o\fR, \fB\-\-output\fR`,
	} {
		require.Contains(t, page, want)
	}
	testkit.ManualPage(t, "attune-executor", page, *update)
}
