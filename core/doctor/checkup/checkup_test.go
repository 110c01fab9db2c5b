package checkup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/doctor/checkup"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bundle is an installation that is well: a migrated database, a topology, one
// replica and one worker that consumes.
type bundle struct {
	t          *testing.T
	cfg        *config.Config
	store      *store.Store
	link       *broker.Broker
	management *broker.Management
	worker     testkit.WorkerRow
}

func setup(t *testing.T) *bundle {
	t.Helper()
	database := testkit.Database(t)
	b := &bundle{t: t, cfg: config.Default(), store: testkit.OpenStore(t, database)}
	b.cfg.Database.URL, b.cfg.Database.Schema = database, testkit.Schema
	b.cfg.MessageQueue.URL, b.cfg.MessageQueue.ManagementURL = testkit.VHost(t), testkit.ManagementURL(t)
	b.link = b.connect("doctor", "")
	declaring := b.connect("attune-executor 1", "")
	ctx := testkit.Context(t)
	require.NoError(t, declaring.DeclareExecutor(ctx)) // without management rights: by bindings alone
	b.worker = testkit.Worker(t, b.store, "w-1")
	require.NoError(t, declaring.DeclareWorker(ctx, b.worker.ID, b.cfg.MessageQueue.RabbitMQ.WorkerQueueTTL))
	require.NoError(t, declaring.BindWorkerDeadLetters(ctx, b.worker.ID))
	b.consume(declaring, message.WorkerExecutionsQueue(b.worker.ID), "worker")
	b.consume(declaring, message.QueueExecutionRequests, "executor.scheduler")
	testkit.Exec(t, b.store, `insert into engine_replica (id, host, version, pid, state, details) values (gen_random_uuid(), 'h', 'v1', 7, 'connected',
		jsonb_build_object('clock', clock_timestamp()))`)
	vhost, err := broker.VHostOf(b.cfg.MessageQueue.URL)
	require.NoError(t, err)
	b.management, err = broker.NewManagement(b.cfg.MessageQueue.ManagementURL, vhost, 5*time.Second)
	require.NoError(t, err)
	t.Cleanup(b.management.Close)
	return b
}

func (b *bundle) connect(name, address string) *broker.Broker {
	b.t.Helper()
	if address == "" {
		address = b.cfg.MessageQueue.URL
	}
	link := broker.New(broker.Config{URL: address, ConnectionName: name, ConnectTimeout: 2 * time.Second},
		slog.New(slog.DiscardHandler), nil)
	require.NoError(b.t, link.Start(testkit.Context(b.t)))
	b.t.Cleanup(link.Stop)
	return link
}

func (b *bundle) consume(link *broker.Broker, queue, tag string) *broker.Consumer {
	b.t.Helper()
	consumer := link.Consume(broker.ConsumerConfig{Queue: queue, Tag: tag})
	require.NoError(b.t, consumer.Start(testkit.Context(b.t)))
	b.t.Cleanup(consumer.Stop)
	testkit.Eventually(b.t, consumer.Subscribed, 10*time.Second)
	return consumer
}

func (b *bundle) run(change ...func(*checkup.Deps, *checkup.Options)) map[string]checkup.Finding {
	b.t.Helper()
	return byName(b.report(change...))
}

// report runs the checks. Replica h reports itself before, and is not late after a pause of this process.
func (b *bundle) report(change ...func(*checkup.Deps, *checkup.Options)) *checkup.Report {
	const later = `now() + interval '20 seconds'`
	testkit.Exec(b.t, b.store, `update engine_replica set last_seen = `+later+`, details = case when details ? 'clock' then
		jsonb_set(details, '{clock}', to_jsonb((details ->> 'clock')::timestamptz + (`+later+` - last_seen))) else details end
		where host = 'h'`)
	deps := checkup.Deps{Config: b.cfg, Store: b.store, Broker: b.link, Management: b.management, Version: "v1"}
	var options checkup.Options
	for _, c := range change {
		c(&deps, &options)
	}
	return checkup.Run(testkit.Context(b.t), deps, options)
}

func byName(report *checkup.Report) map[string]checkup.Finding {
	found := map[string]checkup.Finding{}
	for _, f := range report.Checks {
		found[f.Name] = f
	}
	return found
}

// probed has replica h report its probe of the routes.
func (b *bundle) probed(routed int, lost ...string) {
	b.t.Helper()
	report, err := json.Marshal(broker.RouteReport{Routed: routed, Lost: lost})
	require.NoError(b.t, err)
	testkit.Exec(b.t, b.store, `update engine_replica set details = details || jsonb_build_object('routes',
		$1::jsonb || jsonb_build_object('at', details -> 'clock'))`, report)
}

// delete takes an object of the virtual host away.
func (b *bundle) delete(kind, rest string) {
	b.t.Helper()
	vhost := url.PathEscape(testkit.VHostName(b.t, b.cfg.MessageQueue.URL))
	testkit.Manage(b.t, http.MethodDelete, "/api/"+kind+"/"+vhost+"/"+rest, nil, nil)
}

func (b *bundle) ready(queue string) int {
	b.t.Helper()
	state, err := b.link.QueueState(testkit.Context(b.t), queue)
	require.NoError(b.t, err)
	return state.Ready
}

func noProbe(_ *checkup.Deps, o *checkup.Options)      { o.NoProbe = true }
func noManagement(d *checkup.Deps, _ *checkup.Options) { d.Management = nil }

func requireStatus(t *testing.T, f checkup.Finding, status checkup.Status, in string) {
	t.Helper()
	require.Equal(t, status, f.Status, "%s: %s %v", f.Name, f.Found, f.Details)
	require.Contains(t, f.Found+"\n"+strings.Join(f.Details, "\n")+"\n"+f.Fix, in)
	require.Equal(t, status == checkup.Failed, f.Fix != "", "a fault comes with what to do: %s", f.Name)
}

func TestAWellInstallationPasses(t *testing.T) {
	b := setup(t)
	report := b.report()
	for _, f := range report.Checks {
		require.Equal(t, checkup.Passed, f.Status, "%s: %s %v", f.Name, f.Found, f.Details)
		require.Empty(t, f.Fix)
	}
	require.True(t, report.Well())
	require.False(t, report.Unreachable())
	require.Zero(t, b.ready(message.QueueDeadLetter), "no probe is left for a person")

	without := b.report(noProbe, noManagement)
	require.True(t, without.Well(), "missing optional parts are no fault")
	require.Equal(t, []string{"management", "dead letters", "expiry and rejection", "queues"},
		without.Names(checkup.Skipped))
	requireStatus(t, byName(without)["topology"], checkup.Passed, "not seen without the management API")

	b.probed(10)
	requireStatus(t, b.run(noProbe)["dead letters"], checkup.Passed, "all 10 routes lead to a queue (probed by a replica ")
	b.cfg.MessageQueue.RabbitMQ.DeadLetter.Enabled = false
	requireStatus(t, b.run()["dead letters"], checkup.Passed, "no replica handles them")
}

// Dead letters without a route are lost, and the doctor names their keys.
func TestLostRoutesOfDeadLettersAreNamed(t *testing.T) {
	b := setup(t)
	key := message.DispatchKey(b.worker.ID)
	b.delete("bindings", "e/"+message.ExchangeDeadLetter+"/q/"+message.QueueDeadLetter+"/"+key)
	requireStatus(t, b.run()["dead letters"], checkup.Failed, "key "+key)
	b.probed(9, key)
	lost := b.run(noProbe)["dead letters"]
	requireStatus(t, lost, checkup.Failed, "1 of 10 routes lead nowhere (probed by a replica ")
	requireStatus(t, lost, checkup.Failed, "key "+key)

	deadLetter := broker.Message{
		ID: "dead-letter", Exchange: message.ExchangeDeadLetter,
		RoutingKey: message.KeyExecutionCompleted, Type: "dead-letter",
	}
	require.NoError(t, b.link.Publisher().Publish(testkit.Context(t), []broker.Message{deadLetter})[0].Err)
	waiting := b.run()["dead letters"]
	requireStatus(t, waiting, checkup.Failed, "1 dead letter waits")
	require.Equal(t, 1, b.ready(message.QueueDeadLetter), "no probe is counted with the waiting dead letters")
	testkit.Exec(t, b.store, `update engine_replica set details = details - 'routes'`)
	require.Equal(t, checkup.Unchecked, b.run()["dead letters"].Status)
	_, err := b.link.PurgeQueue(testkit.Context(t), message.QueueDeadLetter)
	require.NoError(t, err)

	// A policy for all other keys is as good as the binding.
	catching := broker.New(broker.Config{URL: b.cfg.MessageQueue.URL, ManagementURL: b.cfg.MessageQueue.ManagementURL},
		slog.New(slog.DiscardHandler), nil)
	require.NoError(t, catching.Start(testkit.Context(t)))
	t.Cleanup(catching.Stop)
	require.NoError(t, catching.DeclareExecutor(testkit.Context(t)))
	testkit.Eventually(t, func() bool { return b.run()["dead letters"].Status == checkup.Passed }, 20*time.Second)

	b.delete("queues", message.QueueDeadLetter)
	requireStatus(t, b.run()["dead letters"], checkup.Failed, "dead letters are lost")
}

// Deleted and differently declared objects are named, with the management API and, as far as possible, without.
func TestDriftOfTheTopologyIsNamed(t *testing.T) {
	b := setup(t)
	b.delete("queues", message.QueueInquiryResponses)
	b.delete("exchanges", message.ExchangeNotifications)
	requireStatus(t, b.run(noManagement)["topology"], checkup.Failed,
		"queue "+message.QueueInquiryResponses+" does not exist")
	found := b.run()["topology"]
	requireStatus(t, found, checkup.Failed, "exchange "+message.ExchangeNotifications+" does not exist")
	require.Len(t, found.Details, 2)

	other := testkit.Worker(t, b.store, "w-2").ID
	requireStatus(t, b.run(noManagement)["workers"], checkup.Failed,
		fmt.Sprintf("queue worker.%d.executions does not exist", other))
	require.NoError(t, b.link.DeclareWorker(testkit.Context(t), other, time.Minute))
	found = b.run()["workers"]
	requireStatus(t, found, checkup.Failed, fmt.Sprintf("worker.%d.executions has no consumer", other))
	requireStatus(t, found, checkup.Failed, "has x-message-ttl 60000, declared is 300000")

	b.delete("bindings",
		"e/"+message.ExchangeExecutions+"/q/"+message.QueueEnforcements+"/"+url.PathEscape(message.PatternEnforcement))
	requireStatus(t, b.run()["topology"], checkup.Failed, "is not bound to "+message.ExchangeExecutions)
	testkit.Exec(t, b.store,
		`update worker set last_heartbeat = now() - interval '1 hour', heartbeat_seen = now() - interval '1 hour'`)
	requireStatus(t, b.run()["workers"], checkup.Passed, "is stale: it is given nothing")

	testkit.Exec(t, b.store, `update worker set status = 'error', heartbeat_seen = now(), last_heartbeat = now() where id = $1`,
		other)
	testkit.Exec(t, b.store, `insert into worker_probe (worker, verdict, reason, since, health, health_reason, details)
		values ($1, 'fresh', '', now(), 'unhealthy', 'cannot start actions: no space left', '{"valid_seconds": 60}')`, other)
	requireStatus(t, b.run()["workers"], checkup.Failed, "worker w-2 is given nothing: cannot start actions: no space left")
}

func TestReplicasClocksAndInvariantsAreChecked(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store,
		`update engine_replica set details = jsonb_build_object('clock', now() + interval '42 minutes')`)
	testkit.Exec(t, b.store, `insert into worker_probe (worker, verdict, skew_seconds) select id, 'fresh', -420 from worker where name = 'w-1'`)
	testkit.Exec(t, b.store, `insert into engine_replica (id, host, version, pid, state, last_seen, details)
		values (gen_random_uuid(), 'newer', 'v2', 8, 'connected', now() - interval '20 seconds', '{}')`)
	action := testkit.Action(t, b.store, "demo.sleep")
	testkit.State(t, b.store, action, 2, func(r *testkit.StateRow) { r.Active = 1 })
	found := b.run()
	requireStatus(t, found["clocks"], checkup.Failed, "replica")
	requireStatus(t, found["clocks"], checkup.Failed, "42m0s ahead of the database")
	requireStatus(t, found["clocks"], checkup.Failed, "worker w-1 is 7m0s behind the database")
	requireStatus(t, found["replicas"], checkup.Failed, "newer, pid 8: silent for ")
	requireStatus(t, found["versions"], checkup.Failed, "1 running replica is v2")
	requireStatus(t, found["consistency"], checkup.Failed, "active_count is 1, 0 executions hold a slot")

	testkit.Exec(t, b.store, `delete from engine_replica where host = 'newer'`)
	testkit.Exec(t, b.store, `update engine_replica set details = '{}'`)
	testkit.Exec(t, b.store, `insert into engine_replica (id, host, version, pid, state, last_seen, details)
		values (gen_random_uuid(), 'killed', 'v1', 9, 'connected', now() - interval '16 minutes', '{}')`)
	requireStatus(t, b.run()["replicas"], checkup.Passed, "1 of 1 are well")
	testkit.Exec(t, b.store, `update engine_replica set last_seen = now() - interval '5 minutes' where host = 'killed'`)
	replaced := b.run()["replicas"]
	requireStatus(t, replaced, checkup.Passed, "1 of 2 are well; 1 vanished and will leave the list after 15m0s")
	require.Contains(t, strings.Join(replaced.Details, "\n"), "killed, pid 9: silent for 5m")

	testkit.Exec(t, b.store, `delete from engine_replica`)
	requireStatus(t, b.run()["replicas"], checkup.Failed, "attune-executor serve")
}

// A replica that stops consuming because of the schema or a privilege is named with the error and the remedy.
func TestAReplicaWithAFaultOfTheInstallationIsNamed(t *testing.T) {
	b := setup(t)
	g := batch.NewGate(batch.GateConfig{})
	refused := &pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "permission denied for table execution"}
	require.Positive(t, g.Tick("rounds", fmt.Errorf("round: %w", refused)))
	details, err := json.Marshal(monitor.ReplicaDetails{
		Clock: time.Now().UTC(), Installation: g.Faults(),
		Consumers: map[string]bool{message.QueueExecutionRequests: false},
	})
	require.NoError(t, err)
	testkit.Exec(t, b.store, `UPDATE engine_replica SET details = $1, started = now() - interval '1 hour'`,
		string(details))

	fix := store.Trouble(refused).Fix
	found := b.run(noProbe)["replicas"]
	requireStatus(t, found, checkup.Failed, "the installation is at fault; 0 of 1 are well")
	require.Equal(t, fix, found.Fix)
	require.Len(t, found.Details, 1)
	require.Regexp(t,
		`^[0-9a-f]+ on h, pid 7: installation at fault: `+regexp.QuoteMeta(store.Trouble(refused).String())+` \(met by rounds\)$`, found.Details[0],
		"one problem: what it does not consume follows from it")

	testkit.Exec(t, b.store, `UPDATE engine_replica SET details = details - 'installation' || '{"consumers": {}}'`)
	requireStatus(t, b.run(noProbe)["replicas"], checkup.Passed, "1 of 1 are well")
}

func TestItemsOfWorkQueuesAreNamed(t *testing.T) {
	b := setup(t)
	requireStatus(t, b.run(noProbe)["work queues"], checkup.Passed, "no item of a work queue waits")
	testkit.Exec(t, b.store,
		`insert into work_queue (ref, label, dispatch_action_ref) values ('jobs.import', 'Import', 'jobs.run')`)
	testkit.Exec(t, b.store, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, created)
		select id, ref, '{}', 'api', now() - interval '3 hours' from work_queue, generate_series(1, 2)`)
	found := b.run(noProbe)["work queues"]
	requireStatus(t, found, checkup.Failed, "2 items wait in 1 work queue, the oldest for 3h")
	requireStatus(t, found, checkup.Failed, "jobs.import: 2 items wait, the oldest for 3h")
	requireStatus(t, found, checkup.Failed, "the items wait for an engine that does")
}

// An engine of another kind that consumes at the same time is distinguished from
// ours by its connection, or by there being more consumers than replicas.
func TestAnotherEngineIsNoticed(t *testing.T) {
	b := setup(t)
	rival := b.connect("rival", "")
	consumer := b.consume(rival, message.QueueExecutionRequests, "executor.scheduler")
	requireStatus(t, b.run(noManagement)["other engines"], checkup.Failed, "has 2 consumers, and 1 replica runs")
	testkit.Eventually(t, func() bool {
		return slices.ContainsFunc(b.run()["other engines"].Details, func(line string) bool {
			return strings.HasPrefix(line,
				"executor.scheduler consumes "+message.QueueExecutionRequests+" by connection rival/consume")
		})
	}, 20*time.Second)
	consumer.Stop()
	testkit.Eventually(t, func() bool { return b.run(noManagement)["other engines"].Status == checkup.Passed },
		10*time.Second)
}

// The checks of a server that is down are reported as unchecked, and the others run.
func TestServersThatAreAway(t *testing.T) {
	b := setup(t)
	away := b.report(func(d *checkup.Deps, _ *checkup.Options) {
		d.Broker = b.connect("away", "amqp://u:secret@127.0.0.1:1/")
	})
	require.True(t, away.Unreachable())
	require.False(t, away.Well())
	require.Equal(t, []string{"broker"}, away.Names(checkup.Failed))
	require.Equal(t, []string{
		"alarms", "topology", "workers", "dead letters", "expiry and rejection", "queues",
		"other engines",
	}, away.Names(checkup.Unchecked))
	requireStatus(t, byName(away)["consistency"], checkup.Passed, " checks of consistency found nothing")
	for _, f := range away.Checks {
		require.NotContains(t, fmt.Sprint(f), "secret")
	}

	nowhere, err := store.Open(context.Background(),
		store.Config{URL: "postgres://u:secret@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(nowhere.Close)
	b.cfg.Database.URL = "postgres://u:secret@127.0.0.1:1/none"
	away = b.report(func(d *checkup.Deps, _ *checkup.Options) { d.Store = nowhere })
	require.True(t, away.Unreachable())
	require.Equal(t, []string{"database"}, away.Names(checkup.Failed))
	require.Equal(t, []string{
		"schema", "workers", "replicas", "versions", "clocks", "other engines", "consistency",
		"work queues",
	}, away.Names(checkup.Unchecked))
	requireStatus(t, byName(away)["topology"], checkup.Passed, "as declared")
	for _, f := range away.Checks {
		require.NotContains(t, fmt.Sprint(f), "secret")
	}
}

// Connections to other machines without TLS pass, with what to do.
func TestConnectionsWithoutTLSAreNamed(t *testing.T) {
	b := setup(t)
	name := func(scheme, host string) {
		b.cfg.MessageQueue.URL = strings.Replace(scheme, "http", "amqp", 1) + "://u:secret@" + host + "/v"
		b.cfg.MessageQueue.ManagementURL = scheme + "://u:secret@" + host
	}
	for _, host := range []string{"mq.example:5672", "localhost,mq.example", "192.0.2.1", "[2001:db8::1]:5672"} {
		name("http", host)
		found := b.run(noProbe)
		for check, fix := range map[string]string{"broker": "amqps://", "management": "https://"} {
			f := found[check]
			require.Equal(t, checkup.Passed, f.Status, f.Found)
			require.Contains(t, f.Found, "not encrypted: it sends the password as clear text", host)
			require.Contains(t, f.Fix, fix, host)
			require.NotContains(t, fmt.Sprint(f), "secret")
		}
	}
	for scheme, host := range map[string]string{"https": "mq.example", "http": "localhost,127.0.0.2,[::1]:1"} {
		name(scheme, host)
		found := b.run(noProbe)
		for _, check := range []string{"broker", "management", "database"} {
			require.NotContains(t, found[check].Found, "not encrypted", host)
			require.Empty(t, found[check].Fix, host)
		}
	}
}

func TestAnUnmigratedSchemaIsReported(t *testing.T) {
	b := setup(t)
	b.cfg.Database.URL = testkit.EmptyDatabase(t)
	empty := testkit.OpenStore(t, b.cfg.Database.URL)
	report := b.report(func(d *checkup.Deps, _ *checkup.Options) { d.Store = empty })
	require.False(t, report.Unreachable())
	requireStatus(t, byName(report)["schema"], checkup.Failed, "run attune-executor migrate up")
	requireStatus(t, byName(report)["consistency"], checkup.Unchecked, "it needs the schema")
}

// A publication of all tables makes PostgreSQL refuse changes of tables without a key.
func TestTablesInAPublicationWithoutAnIdentityAreNamed(t *testing.T) {
	b := setup(t)
	b.cfg.Database.URL = testkit.OwnDatabase(t)
	own := testkit.OpenStore(t, b.cfg.Database.URL)
	look := func() checkup.Finding {
		return byName(b.report(func(d *checkup.Deps, _ *checkup.Options) { d.Store = own }))["schema"]
	}
	require.Equal(t, checkup.Passed, look().Status)
	testkit.Exec(t, own, `CREATE TABLE keyless (a int)`)
	testkit.Exec(t, own, `CREATE PUBLICATION everything FOR ALL TABLES`)
	requireStatus(t, look(), checkup.Failed, "are in a publication without a replica identity")
	require.Contains(t, look().Details, "keyless")
}

// An alarm of the broker is named and blocks no check.
func TestAnAlarmOfTheBrokerIsNamed(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "block publishers of a private stack")
	b := setup(t)
	stack := testkit.NewStack(t)
	b.cfg.MessageQueue.URL = stack.AMQPURL()
	private := b.connect("private", "")
	require.NoError(t, private.DeclareExecutor(testkit.Context(t)))
	management, err := broker.NewManagement(stack.ManagementURL(), "/", 5*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	blocked := func(d *checkup.Deps, _ *checkup.Options) { d.Broker, d.Management = private, management }
	blind := func(d *checkup.Deps, _ *checkup.Options) { d.Broker, d.Management = private, nil }
	_, err = stack.Rabbitmqctl(testkit.Context(t), "set_vm_memory_high_watermark", "0.00001")
	require.NoError(t, err)
	found := b.run(blocked)
	requireStatus(t, found["alarms"], checkup.Failed, "the broker blocks publishers (memory on rabbit@localhost")
	requireStatus(t, found["dead letters"], checkup.Unchecked, "the broker takes no probes")
	requireStatus(t, found["expiry and rejection"], checkup.Unchecked, "the broker takes no probes")

	begin := time.Now()
	require.Equal(t, checkup.Unchecked, b.run(blind)["dead letters"].Status, "the probe gets no answer")
	require.Less(t, time.Since(begin), 30*time.Second)
	requireStatus(t, b.run(blind)["alarms"], checkup.Failed, "low on memory") // the alarm has arrived by now
	_, err = stack.Rabbitmqctl(testkit.Context(t), "set_vm_memory_high_watermark", "absolute", "1GB")
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return b.run(blocked)["alarms"].Status == checkup.Passed }, 10*time.Second)
	testkit.Eventually(t, func() bool {
		state, err := private.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && state.Exists && state.Ready == 0
	}, 10*time.Second, "probes that came late vanish as well")
}
