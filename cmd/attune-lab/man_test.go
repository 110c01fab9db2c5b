package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/manual"
	"github.com/attune-go/attune/lab/testkit"
)

func TestTheManualPageIsThatOfTheCommands(t *testing.T) {
	t.Parallel()
	page := manual.Page(newRootCommand(&app{}), "try, practise, measure and rehearse Attune on private servers", `.SH ENVIRONMENT
.TP
.B DEMO_SECONDS
How long the demo runs without a terminal, 45 by default.
.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage, 3 refused, 4 a server is unreachable.
.SH SEE ALSO
.BR attune\-executor (1),
.BR attune\-tui (1)
`)
	require.Contains(t, page, `.SS "attune\-lab stack up"`)
	testkit.ManualPage(t, "attune-lab", page, *update)
}
