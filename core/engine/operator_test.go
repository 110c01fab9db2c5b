package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// operator runs the command lines of the published documents in a shell, as they are
// written there. It replaces only the address of the API and the {id} of an execution.
// curl, jq, psql and rabbitmqadmin are the real programs; docker and sleep are the test's.
type operator struct {
	*bundle

	t      *testing.T
	change func(*config.Config)
	engine *engine.Engine
	log    logBuffer // of the replica
	home   string    // working directory of the commands
	env    []string
	id     string // replaces {id} in the commands

	docker func(args string) string // returns the output of docker
	sleep  func(seconds string)     // returns when the pause is over
	calls  chan call                // of docker and sleep, which the test's own goroutine answers

	code int // the exit code of the last command
}

// call is one call of a program that the test stands for.
type call struct {
	program, args string
	answer        chan string
}

// operator starts a replica on an adopted database and prepares a shell.
func newOperator(t *testing.T, b *bundle, change func(*config.Config)) *operator {
	t.Helper()
	for _, program := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing, which the published lines use", program)
		}
	}
	o := &operator{bundle: b, t: t, change: change, home: t.TempDir(), calls: make(chan call)}
	o.start()
	t.Cleanup(func() { o.stop() })
	o.prepare()
	return o
}

func (o *operator) start() {
	cfg := o.config()
	cfg.Executor.HTTP.Listen = "127.0.0.1:0"
	if o.change != nil {
		o.change(cfg)
	}
	logger, err := telemetry.NewLogger(&o.log, "info", "text")
	require.NoError(o.t, err)
	o.engine, err = engine.New(o.t.Context(), cfg, engine.Deps{Logger: logger, Version: "test"})
	require.NoError(o.t, err)
	require.NoError(o.t, o.engine.Start(o.t.Context()))
}

func (o *operator) stop() {
	if o.engine != nil {
		require.NoError(o.t, o.engine.Stop(context.Background()))
	}
	o.engine = nil
}

// prepare points the programs to the servers of the test and puts docker and sleep in
// front of those of the machine.
func (o *operator) prepare() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		args, err := io.ReadAll(r.Body)
		if err != nil {
			return // the program was ended
		}
		c := call{program: r.URL.Path, args: string(args), answer: make(chan string, 1)}
		select {
		case o.calls <- c:
		case <-r.Context().Done():
			return
		}
		select {
		case text := <-c.answer:
			_, _ = io.WriteString(w, text) // the program has gone when this fails
		case <-r.Context().Done():
		}
	}))
	o.t.Cleanup(server.Close)
	bin := filepath.Join(o.home, "bin")
	require.NoError(o.t, os.Mkdir(bin, 0o755))
	stand := func(name, arguments string) {
		text := fmt.Sprintf("#!/bin/sh\nexec curl -sS --fail -X POST --data-raw \"%s\" %s/%s\n", arguments, server.URL,
			name)
		require.NoError(o.t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	stand("docker", "$*")
	stand("sleep", "$*")
	if _, err := exec.LookPath("psql"); err != nil {
		stand("psql", "$2") // the statement behind -c, over the driver
	}
	database, err := pgx.ParseConfig(o.Database)
	require.NoError(o.t, err)
	management, err := url.Parse(o.Management)
	require.NoError(o.t, err)
	password, _ := management.User.Password()
	file := fmt.Sprintf(
		"[default]\nhostname = %s\nport = %s\nusername = %s\npassword = %s\nvhost = %[5]s\ndeclare_vhost = %[5]s\n",
		management.Hostname(), management.Port(), management.User.Username(), password, testkit.VHostName(o.t, o.AMQP))
	require.NoError(o.t, os.WriteFile(filepath.Join(o.home, ".rabbitmqadmin.conf"), []byte(file), 0o600))
	o.env = append(os.Environ(), "HOME="+o.home, "PATH="+bin+":"+os.Getenv("PATH"), "TOKEN=none",
		"PGHOST="+database.Host, fmt.Sprintf("PGPORT=%d", database.Port), "PGUSER="+database.User,
		"PGPASSWORD="+database.Password,
		"PGDATABASE="+database.Database, "PGOPTIONS=-c search_path="+testkit.Schema)
}

// stand plays a program that the test replaces.
func (o *operator) stand(c call) string {
	switch c.program {
	case "/docker":
		return o.docker(c.args)
	case "/sleep":
		o.sleep(c.args)
		return ""
	default:
		text, err := o.query(c.args)
		require.NoError(o.t, err, c.args)
		return text
	}
}

// query runs a statement where psql is missing; its rows are one text each.
func (o *operator) query(statement string) (string, error) {
	conn, err := pgx.Connect(o.t.Context(), o.Database)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }() // the process that asked has its answer
	if _, err := conn.Exec(o.t.Context(), "SET search_path = "+testkit.Schema); err != nil {
		return "", err
	}
	rows, err := conn.Query(o.t.Context(), statement)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for rows.Next() {
		values, _ := rows.Values() // rows.Err has the error
		fmt.Fprintln(&text, values...)
	}
	return text.String(), rows.Err()
}

// run runs a command and returns its output.
func (o *operator) run(line string) string {
	o.t.Helper()
	line = strings.NewReplacer("{id}", o.id).Replace(line)
	if o.engine != nil {
		line = strings.ReplaceAll(line, "http://localhost:8080", "http://"+o.engine.Addr())
	}
	cmd := exec.CommandContext(o.t.Context(), "bash", "-c", line)
	cmd.Dir, cmd.Env = o.home, o.env
	var out, errorText bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errorText
	require.NoError(o.t, cmd.Start(), line)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case c := <-o.calls:
			c.answer <- o.stand(c)
		case err := <-ended:
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				require.NoError(o.t, err, line)
			}
			running = false
		}
	}
	o.code = cmd.ProcessState.ExitCode()
	o.t.Logf("$ %s\n%s%s", line, out.String(), errorText.String())
	return out.String()
}

// section returns the lines under a heading of a published document.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "published", document+".txt"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(raw), "== "+heading+"\n")
	require.True(t, ok, "%s has no section %q", document, heading)
	text, _, _ := strings.Cut(rest, "\n== ")
	return strings.TrimSuffix(text, "\n") + "\n"
}

// lines returns the command lines of a section about the time to live of worker queues,
// without its comments.
func lines(t *testing.T, heading string) (list []string) {
	t.Helper()
	for line := range strings.Lines(section(t, ttlDocument, heading)) {
		if !strings.HasPrefix(line, "#") {
			list = append(list, strings.TrimSuffix(line, "\n"))
		}
	}
	return list
}

// step is a numbered step of a manual test: its title, its commands, and the comments behind them with the expected
// output.
type step struct{ title, command, should string }

func steps(t *testing.T) (list []step) {
	t.Helper()
	for line := range strings.Lines(section(t, ttlDocument, "Manual Test: Verify TTL Expiration")) {
		text, comment := strings.CutPrefix(line, "# ")
		switch {
		case comment && strings.HasPrefix(text, fmt.Sprint(len(list)+1)+". "):
			list = append(list, step{title: strings.TrimSpace(text)})
		case comment:
			list[len(list)-1].should += strings.TrimSpace(text)
		default:
			list[len(list)-1].command += line
		}
	}
	return list
}

// needs skips a test of commands whose program is not installed.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is missing", program)
	}
}
