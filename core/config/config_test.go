package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write puts a configuration file into a folder of its own.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func load(t *testing.T, content string, environ ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(write(t, content), environ)
	require.NoError(t, err)
	return cfg
}

func entry(t *testing.T, cfg *config.Config, key string) config.Entry {
	t.Helper()
	for _, e := range cfg.Explain() {
		if e.Key == key {
			return e
		}
	}
	require.FailNow(t, "no such key", key)
	return config.Entry{}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", nil)
	require.NoError(t, err)
	require.Empty(t, cfg.Warnings)
	require.Equal(t, "amqp://guest:guest@localhost:5672/%2f", cfg.MessageQueue.URL)
	require.Equal(t, 5*time.Minute, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL)
	require.Equal(t, 24*time.Hour, cfg.MessageQueue.RabbitMQ.DeadLetter.TTL)
	require.Equal(t, 90*time.Second, cfg.Executor.StaleAfter())
	require.Equal(t, time.Hour, cfg.Executor.Queue.Timeout)

	for key, note := range map[string]string{
		"database.max_connections":              "the published default is 50",
		"message_queue.rabbitmq.prefetch_count": "the published default is 10",
		"worker.heartbeat_interval":             "the published default is 30s",
		"executor.heartbeat_interval":           "",
	} {
		got := entry(t, cfg, key)
		require.Equal(t, "default", got.Source, key)
		require.Equal(t, note, got.Note, key)
	}
}

func TestEveryDefaultIsAcceptedWhenWrittenOut(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	for _, e := range cfg.Explain() {
		if e.Value == "" || strings.Contains(e.Value, "***") {
			continue
		}
		name := "ATTUNE__" + strings.ToUpper(strings.ReplaceAll(e.Key, ".", "__"))
		loaded, err := config.Load("", []string{name + "=" + e.Value})
		require.NoError(t, err, e.Key)
		require.Equal(t, e.Value, entry(t, loaded, e.Key).Value)
		require.Equal(t, "environment "+name, entry(t, loaded, e.Key).Source)
	}
}

func TestLoadFile(t *testing.T) {
	t.Parallel()
	path := write(t, `
database:
  url: postgresql://u:p@db:5432/attune
  schema: other
message_queue:
  url: amqp://u:p@mq:5672
  rabbitmq:
    worker_queue_ttl_ms: 60000
    dead_letter: { ttl_ms: 2h }
executor:
  scheduled_timeout: 120
  timeout_check_interval: 1m30s
  queue: { queue_timeout_seconds: 0 }
worker:
  labels: { zone: a, topology.example.org/rack: r1 }
  taints: [{ key: gpu, value: "yes" }]
  runtimes: [python, shell]
  capabilities: { attempt_fence: true }
alerts:
  queue_length: { above: 50 }
  mail_wait: { measure: head_wait, above: 30, target: mail.send }
`)
	cfg, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, path, cfg.Path)
	require.Equal(t, "other", cfg.Database.Schema)
	require.Equal(t, "http://u:p@mq:15672", cfg.MessageQueue.ManagementURL)
	require.Equal(t, time.Minute, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL)
	require.Equal(t, 2*time.Hour, cfg.MessageQueue.RabbitMQ.DeadLetter.TTL)
	require.Equal(t, 2*time.Minute, cfg.Executor.ScheduledTimeout)
	require.Equal(t, 90*time.Second, cfg.Executor.TimeoutCheckInterval)
	require.Zero(t, cfg.Executor.Queue.Timeout)
	require.Equal(t, map[string]string{"zone": "a", "topology.example.org/rack": "r1"}, cfg.Worker.Labels)
	require.Equal(t, []config.Taint{{Key: "gpu", Value: "yes", Effect: "no_schedule"}}, cfg.Worker.Taints)
	require.Equal(t, []string{"python", "shell"}, cfg.Worker.Runtimes)
	require.Equal(t, true, cfg.Worker.Capabilities["attempt_fence"])
	require.InDelta(t, 50, cfg.Alerts["queue_length"].Above, 0)
	require.Equal(t, "queue_length", cfg.Alerts["queue_length"].Measure, "other keys keep their defaults")
	require.Equal(t,
		&config.AlertRule{Enabled: true, Measure: "head_wait", Above: 30, Severity: "warning", Target: "mail.send"},
		cfg.Alerts["mail_wait"])
	require.Equal(t, path+":4", entry(t, cfg, "database.schema").Source)
	require.Equal(t, "derived from message_queue.url", entry(t, cfg, "message_queue.management_url").Source)
}

// On the schema of an existing installation no execution waits for workers, as there, unless it is set.
func TestTheGraceForWorkersFollowsTheOriginOfTheSchema(t *testing.T) {
	t.Parallel()
	cfg := load(t, "service_name: x\n")
	require.Equal(t, 10*time.Minute, cfg.NoWorkersGrace(false))
	require.Zero(t, cfg.NoWorkersGrace(true))
	require.Equal(t, "0 on the schema of an existing installation", entry(t, cfg, "executor.no_workers_grace").Note)
	cfg = load(t, "executor: {no_workers_grace: 10m}\n")
	require.Equal(t, 10*time.Minute, cfg.NoWorkersGrace(true))
	cfg = load(t, "executor: {no_workers_grace: 0}\n")
	require.Zero(t, cfg.NoWorkersGrace(false))
}

func TestEnvironmentOverridesTheFile(t *testing.T) {
	t.Parallel()
	path := write(t,
		"executor: { queue: { max_queue_length: 7 }, no_workers: fail }\nworker: { labels: { zone: a } }\n")
	cfg, err := config.Load("", []string{
		"ATTUNE_CONFIG=" + path,
		"ATTUNE__EXECUTOR__QUEUE__MAX_QUEUE_LENGTH=5000",
		"attune__executor__no_workers=wait",
		"ATTUNE__WORKER__LABELS__DISK=ssd",
		"ATTUNE__WORKER__RUNTIMES=python, node",
		`ATTUNE__WORKER__TAINTS=[{"key":"gpu"}]`,
		"ATTUNE__ALERTS__MINE__MEASURE=outbox_age",
		"UNRELATED=1",
	})
	require.NoError(t, err)
	require.Equal(t, 5000, cfg.Executor.Queue.MaxQueueLength)
	require.Equal(t, "wait", cfg.Executor.NoWorkers)
	require.Equal(t, map[string]string{"zone": "a", "disk": "ssd"}, cfg.Worker.Labels)
	require.Equal(t, []string{"python", "node"}, cfg.Worker.Runtimes)
	require.Equal(t, "gpu", cfg.Worker.Taints[0].Key)
	require.Equal(t, "outbox_age", cfg.Alerts["mine"].Measure)
	require.Equal(t, "environment ATTUNE__EXECUTOR__QUEUE__MAX_QUEUE_LENGTH",
		entry(t, cfg, "executor.queue.max_queue_length").Source)
}

func TestKeysMayBeNumbersAndMergeKeysAreFollowed(t *testing.T) {
	t.Parallel()
	cfg := load(t, `
base: &base { labels: { zone: a }, name: first }
worker:
  <<: *base
  name: second
alerts:
  5: { measure: head_wait, above: 30 }
  queue_length: { above: 50 }
`, "ATTUNE__WORKER__LABELS__RACK=r1")
	require.Equal(t, "second", cfg.Worker.Name)
	require.Equal(t, map[string]string{"zone": "a", "rack": "r1"}, cfg.Worker.Labels)
	require.InDelta(t, 30, cfg.Alerts["5"].Above, 0)
	require.InDelta(t, 50, cfg.Alerts["queue_length"].Above, 0)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		file string
		env  []string
		want string // FILE stands for the path
	}{
		"UnknownKey": {
			file: "executor:\n  queue:\n    max_queue_len: 5\n",
			want: "FILE:3: executor.queue.max_queue_len is not a known key; the nearest is executor.queue.max_queue_length",
		},
		"KeyInTheWrongSection": {
			file: "executor:\n  max_queue_length: 5\n",
			want: "FILE:2: executor.max_queue_length is not a known key; the nearest is executor.queue.max_queue_length",
		},
		"MisspeltSection": {
			file: "executer:\n  scheduled_timeout: 5\n",
			want: "FILE:1: executer is not a known key; the nearest is executor",
		},
		"MisspeltSharedSection": {
			file: "retention:\n  histroy: 5\n",
			want: "FILE:2: retention.histroy is not a known key; the nearest is retention.history",
		},
		"UnknownVariable": {
			env:  []string{"ATTUNE__DATABASE__SCHEMAA=x"},
			want: "environment ATTUNE__DATABASE__SCHEMAA: database.schemaa is not a known key; the nearest is database.schema",
		},
		"VariableNamesASection": {
			env:  []string{"ATTUNE__DATABASE=x"},
			want: "environment ATTUNE__DATABASE: database is a section: name one of its keys",
		},
		"UnknownRuleKey": {
			file: "alerts:\n  mine: { mesure: head_wait }\n",
			want: "FILE:2: alerts.mine.mesure is not a known key; the nearest is alerts.mine.measure",
		},
		"RuleWithoutMeasure": {
			file: "alerts:\n  mine:\n    above: 1\n",
			want: `FILE:3: alerts.mine.measure: "" is not one of ` + measureNames(),
		},
		"UnknownMeasure": {
			file: "alerts:\n  mine: { measure: hed_wait }\n",
			want: `FILE:2: alerts.mine.measure: "hed_wait" is not a measure; the nearest is head_wait`,
		},
		"SeverityOfARule": {
			file: "alerts:\n  topology: { severity: fatal }\n",
			want: `FILE:2: alerts.topology.severity: "fatal" is not one of info, warning, critical`,
		},
		"SectionIsAScalar": {
			file: "executor: 5\n",
			want: "FILE:1: executor is a section: write its keys below it",
		},
		"NotANumber": {
			file: "database:\n  max_connections: many\n",
			want: `FILE:2: database.max_connections: "many" is not a whole number`,
		},
		"NotWhole": {
			file: "database: { max_connections: 2.5 }\n",
			want: "FILE:1: database.max_connections: 2.5 is not a whole number",
		},
		"NotABool": {
			file: "executor: { enable_timeout_monitor: maybe }\n",
			want: `FILE:1: executor.enable_timeout_monitor: "maybe" is not true or false`,
		},
		"NotADuration": {
			file: "executor: { scheduled_timeout: soon }\n",
			want: `FILE:1: executor.scheduled_timeout: "soon" is not a duration: use a number of seconds or a form like 1m30s`,
		},
		"NotAList": {
			file: "worker: { runtimes: { a: 1 } }\n",
			want: "FILE:1: worker.runtimes: {a: 1} is not a list",
		},
		"OutOfRange": {
			file: "executor:\n  scheduled_timeout: 0\n",
			want: "FILE:2: executor.scheduled_timeout: 0s is out of range: allowed is 1s to 240h",
		},
		"NumberOutOfRange": {
			file: "executor: { retry: { jitter: 1.5 } }\n",
			want: "FILE:1: executor.retry.jitter: 1.5 is out of range: allowed is 0 to 1",
		},
		"CountOutOfRange": {
			file: "executor: { retry: { max_unstarted: 101 } }\n",
			want: "FILE:1: executor.retry.max_unstarted: 101 is out of range: allowed is 0 to 100",
		},
		"TooLarge": {
			file: "database: { max_connections: 99999999999 }\n",
			want: "FILE:1: database.max_connections: 99999999999 is too large",
		},
		"FewerConnectionsThanTheMinimum": {
			file: "database: { min_connections: 9, max_connections: 8 }\n",
			want: "FILE:1: database.min_connections: must not exceed database.max_connections",
		},
		"RetryDelays": {
			file: "executor: { retry: { base_delay: 60, max_delay: 59 } }\n",
			want: "FILE:1: executor.retry.max_delay: must not be shorter than executor.retry.base_delay",
		},
		"NotOneOf": {
			file: "executor: { no_workers: panic }\n",
			want: `FILE:1: executor.no_workers: "panic" is not one of fail, wait`,
		},
		"DatabaseURL": {
			file: "database:\n  url: mysql://root:hunter2@db\n",
			want: "FILE:2: database.url: must be a URL like postgresql://user:password@host:port",
		},
		"Schema": {
			file: "database: { schema: 'a; drop' }\n",
			want: "FILE:1: database.schema: the name must have 1 to 63 letters, digits or underscores",
		},
		"BrokerURL": {
			env:  []string{"ATTUNE__MESSAGE_QUEUE__URL=http://mq"},
			want: "environment ATTUNE__MESSAGE_QUEUE__URL: message_queue.url: must be a URL like amqp://user:password@host:port",
		},
		"ListenBeyondLoopbackWithoutTokens": {
			file: "executor: { http: { listen: 0.0.0.0:8080 } }\n",
			want: `FILE:1: executor.http.listen: "0.0.0.0:8080" is reachable from other machines: set executor.http.tokens_file, or listen on 127.0.0.1`,
		},
		"ContradictingAlias": {
			file: "executor: { worker_queue_ttl: 60 }\nmessage_queue: { rabbitmq: { worker_queue_ttl_ms: 61000 } }\n",
			want: "FILE:1: executor.worker_queue_ttl contradicts message_queue.rabbitmq.worker_queue_ttl_ms (FILE:2): keep one of them",
		},
		"ShortEncryptionKey": {
			file: "security: { encryption_key: hunter2 }\n",
			want: "FILE:1: security.encryption_key: the key must have at least 32 characters",
		},
		"DuplicateKey": {
			file: "database: { schema: a }\ndatabase: { schema: b }\n",
			want: `FILE: yaml: unmarshal errors: line 2: mapping key "database" already defined at line 1`,
		},
		"BrokenYAML": {
			file: "database: [\n",
			want: "FILE:1: this is not YAML: did not find expected node content",
		},
		"NotAMapping": {
			file: "- database\n",
			want: "FILE:1: the configuration must be a mapping of sections",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, tc.file)
			_, err := config.Load(path, tc.env)
			require.EqualError(t, err, strings.ReplaceAll(tc.want, "FILE", path))
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "hunter2")
		})
	}

	t.Run("MissingFile", func(t *testing.T) {
		t.Parallel()
		_, err := config.Load("nowhere.yaml", nil)
		require.EqualError(t, err,
			"the configuration file nowhere.yaml does not exist: correct --config or ATTUNE_CONFIG")
	})
}

// The values that a refusal names as the range are allowed.
func TestTheEndsOfARangeAreAllowed(t *testing.T) {
	t.Parallel()
	cfg := load(t, "executor: { scheduled_timeout: 1, retry: { jitter: 0, max_unstarted: 0 } }\n")
	require.Equal(t, time.Second, cfg.Executor.ScheduledTimeout)
	cfg = load(t, "executor: { scheduled_timeout: 240h, retry: { jitter: 1, max_unstarted: 100 } }\n")
	require.Equal(t, 240*time.Hour, cfg.Executor.ScheduledTimeout)
	require.Equal(t, 100, cfg.Executor.Retry.MaxUnstarted)
}

func TestForeignAndInertKeysAreNamedOnce(t *testing.T) {
	t.Parallel()
	path := write(t, `
server: { port: 8080, host: 0.0.0.0, enable_cors: true }
redis: { url: x }
security: { enable_auth: false }
retention: { cycle_seconds: 3600 }
message_queue:
  exchange: attune
  rabbitmq: { pool_size: 10, queues: { events: { name: e } } }
worker: { stream_logs: true }
`)
	cfg, err := config.Load(path, []string{"ATTUNE__SERVER__PORT=1", "ATTUNE__LOG__LEVEL=debug"})
	require.NoError(t, err)
	require.Equal(t, []string{
		path + ":7: message_queue.exchange has no effect: the exchanges are attune.events, attune.executions and attune.notifications",
		path + ":8: message_queue.rabbitmq.pool_size has no effect: two connections are used, one to publish and one to consume",
		path + ":8: message_queue.rabbitmq.queues has no effect: queues keep their published names",
		path + ":9: worker.stream_logs has no effect: output is stored with the result",
		"ignored, as they belong to other Attune services: log, redis, retention.cycle_seconds, " +
			"security.enable_auth, server.enable_cors",
	}, cfg.Warnings)
}

// A file with every published key loads. Keys without effect are named, and keys of other services in one line.
func TestEveryPublishedKeyIsAccepted(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(filepath.Join("testdata", "published.yaml"), nil)
	require.NoError(t, err)
	require.Equal(t, "signs-all-tokens", cfg.Security.JWTSecret)
	require.Equal(t, 2*time.Minute, cfg.Executor.ScheduledTimeout)
	require.Equal(t, "attune", cfg.Database.Schema, "null is the default")
	require.Equal(t, "w1", cfg.Worker.Name)
	var inert []string
	for _, warning := range cfg.Warnings[:len(cfg.Warnings)-1] {
		if strings.Contains(warning, "every user of this machine can read") { // as the checkout decides
			continue
		}
		key, reason, ok := strings.Cut(warning[strings.Index(warning, ": ")+2:], " has no effect: ")
		require.True(t, ok, warning)
		require.NotEmpty(t, reason)
		inert = append(inert, key)
	}
	require.Subset(t, inert, []string{
		"worker.service_name", "worker.cleanup_interval", "worker.work_dir", "worker.python", "worker.nodejs",
		"worker.shell",
		"worker.execution_log_retention_policy", "worker.execution_log_retention_limit", "worker.runtime_id",
		"worker.stream_logs",
		"message_queue.exchange", "message_queue.rabbitmq.host", "message_queue.rabbitmq.queues",
	})
	require.Equal(t, "ignored, as they belong to other Attune services: agent, artifacts, log, maintenance, notifier, pack_registry, "+
		"pack_upload, rabbitmq, redis, retention.batch_size, retention.cycle_interval_seconds, "+
		"security.allow_self_registration, security.enable_auth, security.jwt_access_expiration, security.jwt_refresh_expiration, "+
		"security.ldap, security.login_page, security.oidc, security.password_min_length, sensor, server.cors_origins, "+
		"server.enable_cors, server.max_body_size, server.request_timeout",
		cfg.Warnings[len(cfg.Warnings)-1])
}

// The same keys from the environment, as published deployments set them.
func TestPublishedVariablesAreAccepted(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", []string{
		"ATTUNE__SECURITY__JWT_SECRET=signs-all-tokens", "ATTUNE__WORKER__SERVICE_NAME=x",
		"ATTUNE__WORKER__PYTHON__EXECUTABLE=python3",
		"ATTUNE__SENSOR__POLL_INTERVAL=5", "ATTUNE__RUNTIME_ENVS_DIR=/x", "ATTUNE__AGENT__BINARY_DIR=/x",
	})
	require.NoError(t, err)
	require.Equal(t, "signs-all-tokens", cfg.Security.JWTSecret)
}

// A misspelt key in a section of ours is refused although the section has keys that
// are ignored.
func TestMisspeltKeysBesideIgnoredOnesAreRefused(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"worker: { service_nam: x }":                                "worker.service_nam is not a known key",
		"worker: { heartbeat_intervall: 1 }":                        "worker.heartbeat_intervall is not a known key; the nearest is worker.heartbeat_interval",
		"worker: { pyton: { executable: x } }":                      "worker.pyton is not a known key",
		"security: { jwt_secrets: x }":                              "security.jwt_secrets is not a known key; the nearest is security.jwt_secret",
		"executor: { retry: { honor_action_max_retries: true } }":   "the nearest is executor.retry.honour_action_max_retries",
		"executor: { retry: { honour_action_max_retries: maybe } }": `executor.retry.honour_action_max_retries: "maybe" is not one of origin, true, false`,
	} {
		_, err := config.Load(write(t, file+"\n"), nil)
		require.ErrorContains(t, err, want, file)
	}
}

func TestActionRetriesAreExplained(t *testing.T) {
	t.Parallel()
	timeouts := entry(t, load(t, ""), "executor.honour_action_timeout_seconds")
	require.Equal(t, "origin", timeouts.Value)
	require.Contains(t, timeouts.Note, "false on the schema of an existing installation")
	const key = "executor.retry.honour_action_max_retries"
	e := entry(t, load(t, ""), key)
	require.Equal(t, "origin", e.Value)
	require.Contains(t, e.Note, "false on the schema of an existing installation")
	cfg := load(t, "executor: { retry: { honour_action_max_retries: true } }\n")
	require.Equal(t, config.Entry{Key: key, Value: "true", Source: cfg.Path + ":1"}, entry(t, cfg, key))
	require.Equal(t, "false",
		load(t, "", "ATTUNE__EXECUTOR__RETRY__HONOUR_ACTION_MAX_RETRIES=false").Executor.Retry.HonourActionMaxRetries)
}

func TestAlias(t *testing.T) {
	t.Parallel()
	const key = "message_queue.rabbitmq.worker_queue_ttl_ms"

	cfg := load(t, "executor: { worker_queue_ttl: 60 }\n")
	require.Equal(t, time.Minute, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL)
	require.Equal(t, cfg.Path+":1 as executor.worker_queue_ttl", entry(t, cfg, key).Source)

	cfg = load(t, "executor: { worker_queue_ttl: 60 }\nmessage_queue: { rabbitmq: { worker_queue_ttl_ms: 60000 } }\n")
	require.Equal(t, time.Minute, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL)

	cfg = load(t, "executor: { worker_queue_ttl: 60 }\n", "ATTUNE__MESSAGE_QUEUE__RABBITMQ__WORKER_QUEUE_TTL_MS=5000")
	require.Equal(t, 5*time.Second, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL, "the environment wins over the file")

	cfg = load(t, "message_queue: { rabbitmq: { worker_queue_ttl_ms: 60000 } }\n",
		"ATTUNE__EXECUTOR__WORKER_QUEUE_TTL=5")
	require.Equal(t, 5*time.Second, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL)
}

func TestSecretFiles(t *testing.T) {
	t.Parallel()

	t.Run("BesideTheConfiguration", func(t *testing.T) {
		t.Parallel()
		path := write(t,
			"database: { url_file: db.url }\nsecurity: { encryption_key_file: key, jwt_secret_file: jwt }\n"+
				"message_queue: { url: amqp://attune@mq, password_file: mq.password }\n")
		folder := filepath.Dir(path)
		for name, content := range map[string]string{
			"db.url": "\uFEFFpostgresql://u:hunter2@db/attune\r\n", "key": strings.Repeat("k", 32) + "\n", "jwt": "signs-all-tokens\n",
			"mq.password": "\uFEFFp@ss/word\r\n", // as an editor of Windows writes it
		} {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		cfg, err := config.Load(path, nil)
		require.NoError(t, err)
		require.Equal(t, "postgresql://u:hunter2@db/attune", cfg.Database.URL)
		require.Equal(t, strings.Repeat("k", 32), cfg.Security.EncryptionKey)
		require.Equal(t, "signs-all-tokens", cfg.Security.JWTSecret)
		require.Equal(t, "amqp://attune:p%40ss%2Fword@mq", cfg.MessageQueue.URL)
		require.Equal(t, "http://attune:p%40ss%2Fword@mq:15672", cfg.MessageQueue.ManagementURL)
		require.Equal(t, path+":1 from "+filepath.Join(folder, "db.url"), entry(t, cfg, "database.url").Source)
	})

	t.Run("RefusedBesideTheValue", func(t *testing.T) {
		t.Parallel()
		path := write(t, "database: { url: postgresql://u@db/a, url_file: db.url }\n")
		_, err := config.Load(path, nil)
		require.EqualError(t, err,
			path+":1: database.url_file and database.url ("+path+":1) are both given: keep one of them")
	})

	t.Run("OfAVariableInTheWorkingFolder", func(t *testing.T) {
		t.Parallel()
		secret := filepath.Join(t.TempDir(), "jwt")
		require.NoError(t, os.WriteFile(secret, []byte("signs-all-tokens\n"), 0o600))
		here, err := os.Getwd()
		require.NoError(t, err)
		relative, err := filepath.Rel(here, secret)
		require.NoError(t, err)
		cfg := load(t, "", "ATTUNE__SECURITY__JWT_SECRET_FILE="+relative)
		require.Equal(t, "signs-all-tokens", cfg.Security.JWTSecret)
	})

	t.Run("OverriddenByTheVariableOfTheValue", func(t *testing.T) {
		t.Parallel()
		cfg := load(t, "database: { url_file: nowhere }\n", "ATTUNE__DATABASE__URL=postgresql://u@db/a")
		require.Equal(t, "postgresql://u@db/a", cfg.Database.URL)
	})

	t.Run("Missing", func(t *testing.T) {
		t.Parallel()
		_, err := config.Load("", []string{"ATTUNE__DATABASE__URL_FILE=/nowhere/url"})
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "environment ATTUNE__DATABASE__URL_FILE: database.url_file")
	})
}

func TestWorkerVariables(t *testing.T) {
	t.Parallel()
	environ := []string{"ATTUNE_WORKER_NAME=w1", "ATTUNE_WORKER_RUNTIMES=python,shell"}
	cfg := load(t, "", environ...)
	require.Equal(t, "w1", cfg.Worker.Name)
	require.Equal(t, []string{"python", "shell"}, cfg.Worker.Runtimes)

	cfg = load(t, "worker: { name: configured, runtimes: [go] }\n", environ...)
	require.Equal(t, "configured", cfg.Worker.Name)
	require.Equal(t, []string{"python", "shell"}, cfg.Worker.Runtimes)
}

func TestExplainMasksSecrets(t *testing.T) {
	t.Parallel()
	cfg := load(t, "database: { url: 'postgresql://u:hunter2@db/attune?password=hunter2' }\n"+
		"message_queue: { url: 'amqp://u:hunter2@mq' }\nsecurity: { encryption_key: hunter2hunter2hunter2hunter2hunter2, jwt_secret: hunter2hunter2hunter2 }\n")
	for _, e := range cfg.Explain() {
		require.NotContains(t, e.Value, "hunter2", e.Key)
	}
	require.Equal(t, "postgresql://u:***@db/attune?password=***", entry(t, cfg, "database.url").Value)
	require.Equal(t, "amqp://u:***@mq", entry(t, cfg, "message_queue.url").Value)
	require.Equal(t, "http://u:***@mq:15672", entry(t, cfg, "message_queue.management_url").Value)
	require.Equal(t, "***", entry(t, cfg, "security.encryption_key").Value)
	require.Equal(t, "***", entry(t, cfg, "security.jwt_secret").Value)
}

func TestDeriveManagement(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"amqp://u:p@mq/%2f":              "http://u:p@mq:15672",
		"amqps://u:p@mq1:5671,mq2:5671/": "https://u:p@mq1:15671,mq2:15671",
		"amqp://[::1]:5672":              "http://guest:guest@[::1]:15672",
		"nowhere":                        "",
	} {
		require.Equal(t, want, config.DeriveManagement(address))
	}
}

func TestAnAddressOfSeveralServers(t *testing.T) {
	t.Parallel()
	require.Empty(t, config.AddressProblem("postgresql://u@a:1,b:2/attune", "postgresql"))
	require.Empty(t, config.AddressProblem("postgresql://u@a:1,b/attune", "postgresql"))
	require.Empty(t, config.AddressProblem("http://u:p@a:1,b:2,c:3", "http", "https"))
	for _, address := range []string{"amqp://u:p@a:1,b:2/v", "http://u:p@a:1,b:2", "http://u:p@a:1,b"} {
		require.Equal(t, strings.Replace(address, ":p@", ":***@", 1), config.MaskURL(address))
	}
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgresql://localhost/attune":            "postgresql://localhost/attune",
		"postgresql://u@localhost/attune":          "postgresql://u@localhost/attune",
		"amqp://u:p%2f@localhost:5672/%2f":         "amqp://u:***@localhost:5672/%2f",
		"host=db user=u password='a b' dbname=x":   "host=db user=u password=*** dbname=x",
		"postgresql://u:p%zz@localhost/attune":     "***",
		"host=db password = hunter2 dbname=attune": "host=db password = *** dbname=attune",
	} {
		require.Equal(t, want, config.MaskURL(address))
	}
}

func TestNamesAndNotes(t *testing.T) {
	t.Parallel()
	cfg := load(t,
		"environment: lab\nexecutor:\n  scheduled_timeout: 60\n  no_workers: wait\n  retry: { enabled: false }\n"+
			"alerts:\n  topology: { severity: info }\n", "ATTUNE__RETENTION__EVENTS=48h")
	require.Equal(t, "the published default is 5", entry(t, cfg, "database.min_connections").Note)
	require.Equal(t, map[string]string{"environment": "lab"}, cfg.Names())
	require.Equal(t, "attune-executor", cfg.Named("attune-executor"))
	require.Equal(t, "billing attune-executor", load(t, "service_name: billing\n").Named("attune-executor"))
	require.Empty(t, entry(t, cfg, "executor.no_workers").Note)
	require.Empty(t, entry(t, cfg, "executor.retry.enabled").Note)
}

// Every setting with a duration reads what the product writes.
func TestDurationsOfSettings(t *testing.T) {
	t.Parallel()
	all, err := config.AssignDurations(config.Default(), "1w1d02h")
	require.NoError(t, err)
	require.Greater(t, len(all), 30)
	for _, d := range all {
		require.Equal(t, 194*time.Hour, d)
	}
}
