package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
	dashboard "github.com/attune-go/attune/tui/app"
)

// places are what a program of each kind says about the servers of an address.
type places struct {
	t       *testing.T
	environ []string
	cfg     *config.Config
}

func placesAt(t *testing.T, database, amqp, management string) *places {
	t.Helper()
	p := &places{t: t, environ: []string{
		"ATTUNE__DATABASE__URL=" + database, "ATTUNE__MESSAGE_QUEUE__URL=" + amqp,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + management, "ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0",
	}}
	cfg, err := config.Load("", p.environ)
	require.NoError(t, err)
	p.cfg = cfg
	return p
}

// command is what a command prints.
func (p *places) command(args ...string) string {
	var out bytes.Buffer
	execute(testkit.Context(p.t), args, p.environ, strings.NewReader(""), &out, &out)
	return out.String()
}

// doctor is the finding of a check of doctor.
func (p *places) doctor(check string) string {
	var report struct {
		Checks []struct {
			Name, Found, Fix string
			Details          []string
		}
	}
	out := p.command("doctor", "--no-probe", "-o", "json")
	text, _, _ := strings.Cut(out, "\nerror: ")
	require.NoError(p.t, json.Unmarshal([]byte(text), &report), out)
	for _, c := range report.Checks {
		if c.Name == check {
			return strings.TrimSuffix(c.Found+": "+c.Fix, ": ") + "\n" + strings.Join(c.Details, "\n")
		}
	}
	return ""
}

// readiness is the answer of /readyz of a worker, and the log of its connection to the broker.
func (p *places) readiness() (ready, log string) {
	t, ctx := p.t, testkit.Context(p.t)
	var lines bytes.Buffer
	st, err := store.Open(ctx, store.Configured(p.cfg, "states"), nil)
	require.NoError(t, err)
	defer st.Close()
	logger, err := (&app{stderr: &lines, logFormat: "text"}).logger("warn")
	require.NoError(t, err)
	link := broker.New(brokerConfig(p.cfg, "states"), logger, nil)
	require.NoError(t, link.Start(ctx))
	server := workerHTTP("127.0.0.1:0", api.Deps{Gatherer: prometheus.NewRegistry(), Logger: logger}, st, link,
		func() placement.Report { return placement.Report{} })
	require.NoError(t, server.Start(ctx))
	state, err := readReadiness(ctx, "http://"+server.Addr()+"/readyz")
	require.NoError(t, err)
	server.Stop()
	link.Stop()
	return fmt.Sprint(state), lines.String()
}

// readyOf reads the readiness of a program.
func (p *places) readyOf(address string) func() string {
	return func() string {
		state, err := readReadiness(testkit.Context(p.t), address)
		require.NoError(p.t, err)
		return fmt.Sprintf("%+v", state)
	}
}

// dashboard is the overview of the dashboard.
func (p *places) dashboard() string {
	ctx := testkit.Context(p.t)
	st, err := store.Open(ctx, store.Configured(p.cfg, "states"), nil)
	require.NoError(p.t, err)
	defer st.Close()
	management, vhost, err := openManagement(p.cfg, 5*time.Second)
	require.NoError(p.t, err)
	defer management.Close()
	shot, err := dashboard.Take(ctx, alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{
		Store: st, Broker: monitor.NewManagementReader(management, vhost),
	}), p.cfg.Alerts, nil), dashboard.Options{}, "", 900, 60)
	require.NoError(p.t, err)
	return ansi.Strip(shot.Text())
}

// Command, doctor, readiness, alerts, the log of a start and the dashboard say the same about a database.
func TestEveryPlaceSaysTheSameAboutADatabase(t *testing.T) {
	t.Parallel()
	amqp := testkit.VHost(t)
	for name, state := range map[string]struct {
		alter string // by an administrator
		at    func(*url.URL)
		says  string
	}{
		"away":    {at: func(u *url.URL) { u.Host = "127.0.0.1:1" }, says: "the database refuses connections, nothing listens there: start it, or correct database.url"},
		"missing": {at: func(u *url.URL) { u.Path = "/attune_none" }, says: "the database attune_none does not exist on its server: create it"},
		"login":   {at: func(u *url.URL) { u.User = url.UserPassword("attune_none", "x") }, says: "the database refuses the login attune_none ("},
		"role's limit": {
			alter: "ALTER ROLE LOGIN CONNECTION LIMIT 0",
			says:  "the database has no connection left for the login LOGIN: its CONNECTION LIMIT is reached: raise it with ALTER ROLE",
		},
		"database's limit": {
			alter: "ALTER DATABASE DBNAME CONNECTION LIMIT 0",
			says:  "the database DBNAME has no connection left: its CONNECTION LIMIT is reached: raise it with ALTER DATABASE",
		},
		"no right to connect": {
			alter: "REVOKE CONNECT ON DATABASE DBNAME FROM PUBLIC, LOGIN",
			says:  "the database refuses the login LOGIN (",
		},
		"read-only role": {
			alter: "ALTER ROLE LOGIN SET default_transaction_read_only = on",
			says:  "the database is read only: ALTER ROLE LOGIN SET default_transaction_read_only = on: find out why",
		},
		"read-only database": {
			alter: "ALTER DATABASE DBNAME SET default_transaction_read_only = on",
			says:  "the database is read only: ALTER DATABASE DBNAME SET default_transaction_read_only = on: find out why",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := testkit.OwnDatabase(t)
			st := testkit.OpenStore(t, own)
			testkit.Action(t, st, "pk.a")
			login := testkit.NewLogin(t, roles.Engine, own, amqp)
			at, err := url.Parse(login.DatabaseURL)
			require.NoError(t, err)
			named := strings.NewReplacer("LOGIN", login.Name, "DBNAME", strings.TrimPrefix(at.Path, "/"))
			if state.alter != "" {
				testkit.Exec(t, st, named.Replace(state.alter))
				t.Cleanup(func() {
					_, err := st.Pool().Exec(context.Background(),
						named.Replace("ALTER DATABASE DBNAME RESET default_transaction_read_only"))
					require.NoError(t, err)
				})
			} else {
				state.at(at)
			}
			placesAt(t, at.String(), login.AMQPURL, login.ManagementURL).sayOfDatabase(named.Replace(state.says))
		})
	}
}

// sayOfDatabase asks all places for a sentence about the database.
func (p *places) sayOfDatabase(says string) {
	p.t.Helper()
	require.Contains(p.t, p.command("queue", "pause", "pk.a", "--reason", "x"), says)
	require.Contains(p.t, p.command("serve"), says, "the log of a start")
	require.Contains(p.t, p.doctor("database"), says)
	ready, _ := p.readiness()
	require.Contains(p.t, ready, says)
	fact := says[:cmp.Or(max(strings.LastIndex(says, ": "), 0), len(says))] // the fix is in a column of its own
	require.Contains(p.t, p.command("alerts", "list"), fact)
	require.Contains(p.t, p.dashboard(), fact)
}

// A standby is read only, and its promotion ends that.
func TestEveryPlaceSaysTheSameAboutAStandby(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "read a standby of the test's own")
	stack := testkit.NewStack(t, func(c *devstack.Config) { c.Durable = true })
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: stack.DatabaseURL(), Schema: testkit.Schema})
	require.NoError(t, err)
	testkit.Action(t, testkit.OpenStore(t, stack.DatabaseURL()), "pk.a")
	standby := testkit.StartStandby(t, stack, false)
	p := placesAt(t, standby.DatabaseURL, stack.AMQPURL(), stack.ManagementURL())
	p.sayOfDatabase("the database is read only: it is a standby: name the primary in database.url")
	standby.Promote()
	require.Contains(t, p.command("queue", "pause", "pk.a", "--reason", "x"), "pause pk.a: 1 changed")
	require.NotContains(t, p.doctor("database"), "read only")
	require.NotContains(t, p.dashboard(), "read only")
}

// A database that is not UTF-8 is refused by migrate, and named by doctor with the same sentence.
func TestADatabaseOfAnotherEncodingIsNamed(t *testing.T) {
	at, err := url.Parse(testkit.EmptyDatabase(t))
	require.NoError(t, err)
	name := strings.TrimPrefix(at.Path, "/") + "_latin"
	admin := testkit.OpenStore(t, at.String())
	testkit.Exec(t, admin, "CREATE DATABASE "+name+" ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
	t.Cleanup(func() {
		_, err := admin.Pool().Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		require.NoError(t, err)
	})
	at.Path = "/" + name
	p := placesAt(t, at.String(), testkit.VHost(t), testkit.ManagementURL(t))
	says := "the database " + name + " has the encoding LATIN1, which alters or refuses texts: create one with ENCODING"
	require.Contains(t, p.command("migrate", "up"), says)
	require.Contains(t, p.command("migrate", "check"), says)
	require.Contains(t, p.doctor("database"), says)
}

// Defaults that an administrator gave the role change nothing: sessions have their own.
func TestDefaultsOfTheRoleDoNoHarm(t *testing.T) {
	own, amqp := testkit.OwnDatabase(t), testkit.VHost(t)
	st := testkit.OpenStore(t, own)
	testkit.Action(t, st, "pk.a")
	login := testkit.NewLogin(t, roles.Engine, own, amqp)
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "statement_timeout = 1",
		"idle_session_timeout = 1", "lock_timeout = 1",
	} {
		testkit.Exec(t, st, "ALTER ROLE "+login.Name+" SET "+setting)
	}
	engine, err := store.Open(t.Context(), store.Config{URL: login.DatabaseURL, Schema: testkit.Schema}, nil)
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Tx(t.Context(), "look", func(ctx context.Context, tx *store.Tx) error {
		var isolation, statement, lock, idle string
		err := tx.QueryRow(ctx, `SELECT current_setting('transaction_isolation'), current_setting('statement_timeout'),
			current_setting('lock_timeout'), current_setting('idle_session_timeout') FROM pg_sleep(0.01)`).
			Scan(&isolation, &statement, &lock, &idle)
		require.Equal(t, []string{"read committed", "0", "0", "0"}, []string{isolation, statement, lock, idle})
		return err
	}))
}

// A reader of an address that demands a primary connects, and still cannot write.
func TestTargetSessionAttrsTakesAReader(t *testing.T) {
	at := testkit.Database(t)
	st := testkit.OpenStore(t, at+map[bool]string{true: "&", false: "?"}[strings.Contains(at, "?")]+
		"target_session_attrs=read-write", func(c *store.Config) { c.ReadOnly = true })
	require.NoError(t, st.Check(t.Context()))
	_, err := st.Pool().Exec(t.Context(), "CREATE TABLE written (a int)")
	require.Equal(t, store.ClassUnable, store.ClassOf(err))
}

// Command, doctor, readiness, log and the commands' notes say the same about a broker.
func TestEveryPlaceSaysTheSameAboutABroker(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]struct {
		limits string
		at     func(*url.URL)
		says   string
	}{
		"away":       {at: func(u *url.URL) { u.Host = "127.0.0.1:1" }, says: "the broker refuses connections, nothing listens there: start it"},
		"login":      {at: func(u *url.URL) { u.User = url.UserPassword("stranger", "x") }, says: "the broker refuses the login stranger: correct the user"},
		"vhost":      {at: func(u *url.URL) { u.Path = "/attune-none" }, says: "the broker refuses the virtual host attune-none to the user "},
		"connection": {limits: "max-connections", says: "limit (0) is reached): create it, give the user permissions in it, or raise the limits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, amqp := testkit.Database(t), testkit.VHost(t)
			at, err := url.Parse(amqp)
			require.NoError(t, err)
			if state.limits != "" {
				testkit.Manage(t, http.MethodPut, "/api/vhost-limits/"+url.PathEscape(testkit.VHostName(t, amqp))+"/"+
					state.limits, map[string]int{"value": 0}, nil)
			} else {
				state.at(at)
			}
			st := testkit.OpenStore(t, database)
			testkit.Worker(t, st, "w1", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
			p := placesAt(t, database, at.String(), testkit.ManagementURL(t))
			require.Contains(t, p.doctor("broker"), state.says)
			ready, log := p.readiness()
			require.Contains(t, ready, state.says)
			require.Contains(t, log, state.says)
			require.Contains(t, p.command("workers", "forget", "w1", "--yes", "--reason", "x"), state.says)
		})
	}
}

// The engine runs when the state begins. Its readiness, alerts and log, doctor and dashboard then say it. What commands
// say of their own connections is tested above; they need few channels, and declare no queues.
func TestEveryPlaceSaysTheSameAboutABrokerUnderWay(t *testing.T) {
	t.Parallel()
	type limited struct {
		name   string
		alter  func(t *testing.T, user, vhost string)
		says   string
		header string // of the dashboard
	}
	const cutOff = "MQ ✗ no replica connected"
	limit := func(of, name string) func(*testing.T, string, string) {
		return func(t *testing.T, user, vhost string) {
			t.Helper()
			testkit.Manage(t, http.MethodPut, "/api/"+of+"-limits/"+map[string]string{"user": user, "vhost": vhost}[of]+
				"/"+name, map[string]int{"value": 0}, nil)
		}
	}
	permit := func(write, read string) func(*testing.T, string, string) {
		return func(t *testing.T, user, vhost string) {
			t.Helper()
			testkit.Manage(t, http.MethodPut, "/api/permissions/"+vhost+"/"+user,
				map[string]string{"configure": ".*", "write": write, "read": read}, nil)
		}
	}
	for _, state := range testkit.Some(t, []limited{
		{
			name: "login", header: cutOff, says: "the broker refuses the login USER: correct the user",
			alter: func(t *testing.T, user, _ string) {
				t.Helper()
				testkit.Manage(t, http.MethodPut, "/api/users/"+user,
					map[string]string{"password": "another", "tags": "monitoring"}, nil)
			},
		},
		{
			name: "no permission in the virtual host", header: cutOff,
			says: "the broker refuses the virtual host VHOST to the user USER (",
			alter: func(t *testing.T, user, vhost string) {
				t.Helper()
				testkit.Manage(t, http.MethodDelete, "/api/permissions/"+vhost+"/"+user, nil, nil)
			},
		},
		{
			name: "connections of the virtual host", header: cutOff, alter: limit("vhost", "max-connections"),
			says: "the broker refuses the virtual host VHOST to the user USER (NOT_ALLOWED - access to vhost 'VHOST' " +
				"refused for user 'USER': connection limit (0) is reached): create it",
		},
		{
			name: "connections of the user", header: cutOff, alter: limit("user", "max-connections"),
			says: "user connection limit (0) is reached): create it, give the user permissions in it, or raise the limits",
		},
		{
			name: "channels of the user", header: cutOff, alter: limit("user", "max-channels"),
			says: "the broker refuses (NOT_ALLOWED - number of channels opened for user 'USER' has reached the maximum " +
				"allowed user limit of (0)): raise the limits",
		},
		{
			name: "queues of the virtual host", header: "MQ ●",
			alter: func(t *testing.T, user, vhost string) {
				t.Helper()
				limit("vhost", "max-queues")(t, user, vhost)
				testkit.Manage(t, http.MethodDelete, "/api/queues/"+vhost+"/attune.inquiry.responses.queue", nil, nil)
			},
			says: "queue limit in vhost 'VHOST' (0) is reached): raise the limits of the virtual host",
		},
		{
			name: "no write permission", header: "MQ ●", alter: permit("^$", ".*"),
			says: "the user of message_queue.url lacks a permission (ACCESS_REFUSED - access to exchange '",
		},
		{
			name: "no read permission", header: "MQ ●", alter: permit(".*", "^$"),
			says: "the user of message_queue.url lacks a permission (ACCESS_REFUSED - access to queue '",
		},
	}, 3) {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			database, amqp := testkit.Database(t), testkit.VHost(t)
			login := testkit.NewLogin(t, roles.Engine, database, amqp)
			st := testkit.OpenStore(t, database)
			p := placesAt(t, login.DatabaseURL, login.AMQPURL, testkit.ManagementURL(t))
			var log output
			background(t, &log, p.environ, "serve")
			ready := p.readyOf("http://" + log.address(t) + "/readyz")
			testkit.Eventually(t, func() bool { return strings.Contains(ready(), "Status:ready") }, time.Minute)

			vhost := testkit.VHostName(t, amqp)
			state.alter(t, login.Name, url.PathEscape(vhost))
			if state.header == cutOff || strings.Contains(state.name, "read") {
				testkit.Eventually(t, func() bool { // the list of connections is late
					var open []struct{ Name string }
					testkit.Manage(t, http.MethodGet, "/api/vhosts/"+url.PathEscape(vhost)+"/connections", nil, &open)
					for _, connection := range open {
						testkit.Cut(t, connection.Name)
					}
					return !strings.Contains(ready(), "Status:ready")
				}, time.Minute)
			}
			if strings.Contains(state.name, "write") {
				testkit.Exec(t, st, `insert into outbox
					(created, message_ids, exchanges, routing_keys, message_types, bodies, traces) values (now() - interval '1 minute',
					'{m}', '{attune.executions}', '{execution.requested}', '{ExecutionRequested}', array['{}'::bytea], '{""}')`)
			}
			says := strings.NewReplacer("USER", login.Name, "VHOST", vhost).Replace(state.says)
			p.sayOfBroker(ready, &log, says, state.header)
		})
	}
}

// sayOfBroker waits until the places say a sentence about the broker of a running engine.
func (p *places) sayOfBroker(ready func() string, log *output, says, header string) {
	p.t.Helper()
	for _, place := range []struct {
		name, says string
		read       func() string
	}{
		{"readiness", says, ready},
		{"log", says, log.String},
		{"alerts", says, func() string { return p.command("alerts", "list") }},
		{"dashboard", says, p.dashboard},
		{"header", header, p.dashboard},
		{"doctor", says, func() string { return p.doctor("replicas") }},
	} {
		last := ""
		defer func() {
			if p.t.Failed() {
				p.t.Logf("%s says %s", place.name, last)
			}
		}()
		testkit.Eventually(p.t, func() bool {
			last = place.read()
			return strings.Contains(last, place.says)
		}, 30*time.Second, place.name)
	}
}

// Alarms, a broker without its application and one without statistics.
func TestEveryPlaceSaysTheSameAboutABrokerOfItsOwn(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "block and stop a broker of the test's own")
	stack := testkit.NewStack(t)
	ctl := func(args ...string) {
		t.Helper()
		_, err := stack.Rabbitmqctl(testkit.Context(t), args...)
		require.NoError(t, err)
	}
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: stack.DatabaseURL(), Schema: testkit.Schema})
	require.NoError(t, err)
	p := placesAt(t, stack.DatabaseURL(), stack.AMQPURL(), stack.ManagementURL())
	var log output
	background(t, &log, p.environ, "serve")
	ready := p.readyOf("http://" + log.address(t) + "/readyz")
	isReady := func() bool { return strings.Contains(ready(), "Status:ready") }
	testkit.Eventually(t, isReady, time.Minute)
	for _, state := range []struct {
		begin, end   []string
		says, header string
	}{
		{
			begin: []string{"set_vm_memory_high_watermark", "0.00001"}, says: "the broker blocks publishers (low on memory)",
			end: []string{"set_vm_memory_high_watermark", "absolute", "1GB"}, header: "MQ ●",
		},
		{
			begin: []string{"set_disk_free_limit", "900000GB"}, says: "the broker blocks publishers (low on disk)",
			end: []string{"set_disk_free_limit", "50MB"}, header: "MQ ●",
		},
		{
			begin: []string{"stop_app"}, says: "the broker refuses connections, nothing listens there", header: "MQ ✗ down",
			end: []string{"start_app"},
		},
	} {
		ctl(state.begin...)
		p.sayOfBroker(ready, &log, state.says, state.header)
		ctl(state.end...)
		testkit.Eventually(t, isReady, time.Minute, "the state ends by itself")
	}
	ctl("eval", "application:set_env(rabbitmq_management_agent, disable_metrics_collector, true).")
	const off = "the management API counts nothing: its statistics are off on this node"
	require.Contains(t, p.doctor("management"), off)
	require.Contains(t, p.dashboard(), "MQ ●")
	require.NotContains(t, p.command("doctor"), "✗ management")
}

// Each answer that is not one of a management API has a name, in doctor and in the dashboard.
func TestEveryPlaceSaysTheSameAboutTheManagementAPI(t *testing.T) {
	t.Parallel()
	database, amqp := testkit.Database(t), testkit.VHost(t)
	for says, answer := range map[string]http.HandlerFunc{
		"the address of the management API answers with something else (a web page)": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>")) // the assertions notice an error
		},
		"the management API redirects (to https://elsewhere.example/)": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		},
		"the management API is not available at the moment (503 Service Unavailable)": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"the management API does not know what was asked for": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
		},
		"the management API refuses the login watcher": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			p := placesAt(t, database, amqp, strings.Replace(server.URL, "://", "://watcher:x@", 1))
			require.Contains(t, p.doctor("management"), says)
			frame := p.dashboard()
			require.Contains(t, frame, says)
			require.Equal(t, strings.Contains(says, "web page"), strings.Contains(frame, "✗ down"), frame)
		})
	}
}

// full is a standard output without room.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/full", Err: syscall.ENOSPC}
}

// A receipt that cannot be written goes to standard error, and no server is blamed.
func TestAReceiptIsNotLostWithTheOutput(t *testing.T) {
	database := testkit.Database(t)
	testkit.Action(t, testkit.OpenStore(t, database), "pk.a")
	environ := []string{"ATTUNE__DATABASE__URL=" + database, "ATTUNE__MESSAGE_QUEUE__URL=" + testkit.VHost(t)}
	for _, args := range [][]string{{"queue", "pause", "pk.a", "--reason", "x"}, {"queue", "list"}} {
		var errs bytes.Buffer
		code := execute(testkit.Context(t), args, environ, strings.NewReader(""), full{}, &errs)
		require.Equal(t, exitFailed, code, errs.String())
		require.Contains(t, errs.String(), "error: write the output: write /dev/full: no space left on device")
		require.Equal(t, args[1] == "pause", strings.Contains(errs.String(), "1 queue is paused"), errs.String())
	}
}
