package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/lab/testkit"
)

// roleOf is a shell program that runs each command with the login of its role. Commands of the owner of the schema
// (migrate, apply and so on) keep the owner's login.
const roleOf = `#!/bin/sh
role=viewer
case "$1 $2" in
"serve "*) role=engine ;;
"worker "*) role=worker ;;
"run "* | "doctor "* | "execution cancel" | "execution retry" | "inquiry respond") role=operator ;;
"queue list" | "queue show" | "workers list" | "workers show" | "workflow list" | "workflow show") ;;
"dlq list" | "dlq show" | "dlq stats" | "dlq export" | *" list" | *" show") ;;
"queue "* | "workers "* | "workflow "* | "dlq "*) role=operator ;;
"migrate "* | "apply "* | "emit "* | "roles "* | "stack "* | "demo "* | "bench "*) role=owner ;;
"pack "* | "action "* | "trigger "* | "policy "* | "rule "*) role=owner ;;
esac
echo "$role $*" >>%[1]s/roles.log
case $role in
%[2]sesac
# A script may name other servers, which do not answer.
[ "$ATTUNE__DATABASE__URL" = "$OWNER_DATABASE" ] && [ -n "$database" ] && export ATTUNE__DATABASE__URL="$database"
[ "$ATTUNE__MESSAGE_QUEUE__URL" = "$OWNER_BROKER" ] && [ -n "$broker" ] && export ATTUNE__MESSAGE_QUEUE__URL="$broker"
[ "$ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL" = "$MANAGEMENT" ] && [ -n "$management" ] &&
	export ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="$management"
exec %[3]s "$@"
`

// withRoles puts the program roleOf before attune-executor in the path of a script.
func withRoles(t *testing.T, env *testscript.Env) error {
	t.Helper()
	env.Setenv("GORACE", noExitPause)
	database, amqp := env.Getenv("ATTUNE__DATABASE__URL"), env.Getenv("ATTUNE__MESSAGE_QUEUE__URL")
	var cases strings.Builder
	for _, role := range roles.All {
		l := testkit.NewLogin(t, role, database, amqp)
		fmt.Fprintf(&cases, "%s) database='%s' broker='%s' management='%s' ;;\n", role, l.DatabaseURL, l.AMQPURL,
			l.ManagementURL)
		env.Setenv(strings.ToUpper(string(role)), l.Name)
		env.Setenv(strings.ToUpper(string(role))+"_DATABASE", l.DatabaseURL)
	}
	folder := filepath.Join(env.WorkDir, ".roles")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	program := filepath.Join(folder, "attune-executor")
	text := fmt.Sprintf(roleOf, folder, cases.String(), testkit.Program(t))
	env.Setenv("OWNER_DATABASE", database)
	env.Setenv("OWNER_BROKER", amqp)
	env.Setenv("PATH", folder+string(os.PathListSeparator)+env.Getenv("PATH"))
	return os.WriteFile(program, []byte(text), 0o755)
}

// Every script passes with no login having more than its role.
func TestServerScriptsWithRoles(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "every script once more, with a login for each role")
	files := serverFiles(t)
	serverScripts(t, slices.DeleteFunc(files, func(file string) bool { return !migrates(t, file) }), withRoles)
}

// Each role can run its commands, and others are refused.
func TestRoleScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "roles", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	serverScripts(t, files, withRoles)
}
