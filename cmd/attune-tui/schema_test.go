package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// A schema that is too old or too new is one line, before the dashboard shows errors of missing tables.
func TestASchemaThatDoesNotFitIsRefused(t *testing.T) {
	address := testkit.Database(t)
	st := testkit.OpenStore(t, address)
	environ := []string{
		"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + address,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=http://a:b@127.0.0.1:1",
	}
	code, _, _ := call(t, environ, "--snapshot", "overview")
	require.Zero(t, code)

	testkit.Exec(t, st, `insert into attune_schema_needs values (9090, 9090, '0.99.0')`)
	for _, args := range [][]string{{"--snapshot", "overview"}, {"--plain"}} {
		code, out, text := call(t, environ, args...)
		require.Equal(t, exitRefused, code)
		require.Empty(t, out)
		require.Regexp(t, `^attune-tui: schema attune is at version \d+ and needs a program of at least 0.99.0, .*`+
			`: upgrade this program\n$`, text)
	}

	testkit.Exec(t, st, `delete from attune_schema_needs where version = 9090`)
	testkit.Exec(t, st, `delete from attune_schema_version where version_id = (select max(version_id) from attune_schema_version)`)
	code, _, text := call(t, environ, "--snapshot", "overview")
	require.Equal(t, exitRefused, code)
	require.Regexp(t, `^attune-tui: schema attune is at version \d+ of \d+: run attune-executor migrate up\n$`, text)

	testkit.Exec(t, st, `insert into attune_schema_version (version_id, is_applied) values (93, true)`)
	code, _, text = call(t, environ, "--snapshot", "overview")
	require.Equal(t, exitRefused, code)
	require.Regexp(t, "^attune-tui: schema attune was created by a program before the first release, .*\n$", text)
	testkit.Exec(t, st, `delete from attune_schema_version where version_id = 93`)

	// The live dashboard exits with the same message.
	x := openTerminalIn(t, environ, "; exec cat") // the terminal outlives the program
	x.shows("run attune-executor migrate up")
}
