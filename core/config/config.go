package config

import (
	"sync"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// Config holds every setting. The zero value is not usable; begin with Default or Load.
//
// The comments of the fields are the reference in docs/configuration.md. The field tags are for the loader and Explain:
// key is its name, default its value if that is not 0 or empty, range and oneof the allowed values, secret how the
// value is masked (url hides the password of a URL, value hides all), published the published default where ours
// differs, note the meaning of the default.
type Config struct {
	// Name of this process in log lines, database connections (application_name) and broker connections. It is used
	// only if you set it.
	ServiceName string `key:"service_name" default:"attune"`
	// Name of your installation, such as production, in log lines and broker connections. It is used only if you set
	// it.
	Environment string `key:"environment" default:"development"`
	// Folder for workflow logs and artifacts.
	ArtifactsDir string `key:"artifacts_dir" default:"/opt/attune/artifacts"`
	// Folder with your packs. worker.packs_dir overrides it.
	PacksBaseDir string `key:"packs_base_dir" published:"/opt/attune/packs"`
	// Folder with the installed environments of packs, as PACK/RUNTIME. Workers use the interpreters in it and
	// install nothing themselves.
	RuntimeEnvsDir string `key:"runtime_envs_dir" published:"/opt/attune/runtime_envs"`

	Server       Server       `key:"server"`
	Database     Database     `key:"database"`
	MessageQueue MessageQueue `key:"message_queue"`
	Security     Security     `key:"security"`
	Executor     Executor     `key:"executor"`
	Worker       Worker       `key:"worker"`
	Retention    Retention    `key:"retention"`
	Telemetry    Telemetry    `key:"telemetry"`

	// Alerts are the alert rules by name, the built-in ones included.
	Alerts map[string]*AlertRule `key:"alerts"`

	// Warnings are for the process to log once after loading: ignored sections and keys without effect.
	Warnings []string `key:"-"`
	// Path is the configuration file, empty if there is none.
	Path string `key:"-"`

	sources map[string]string // where a value came from; absent means default
	rereads map[string]func() (string, error)
}

// Reread sets how the address of a key is read again for Login.
func (c *Config) Reread(key string, read func() (string, error)) {
	if c.rereads == nil {
		c.rereads = map[string]func() (string, error){}
	}
	c.rereads[key] = read
}

// Login returns the function that reads the user and the password of an address (database.url, message_queue.url or
// message_queue.management_url) again for every new connection; nil if no file has them. While the file is missing or
// empty, the last login is used.
func (c *Config) Login(key string) func() (user, password string) {
	read := c.rereads[key]
	if read == nil {
		return nil
	}
	var mu sync.Mutex
	var user, password string // the last login; guarded by mu
	login := func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		if address, err := read(); err == nil {
			if u, p := loginOf(address); p != "" {
				user, password = u, p
			}
		}
		return user, password
	}
	login()
	return login
}

// Named prefixes the name of a database connection with service_name, if it is set.
func (c *Config) Named(name string) string {
	if c.sources["service_name"] == "" || c.ServiceName == "" {
		return name
	}
	return c.ServiceName + " " + name
}

// Names returns service_name and environment by key, as far as they are set.
func (c *Config) Names() map[string]string {
	names := map[string]string{}
	for key, value := range map[string]string{"service_name": c.ServiceName, "environment": c.Environment} {
		if c.sources[key] != "" && value != "" {
			names[key] = value
		}
	}
	return names
}

// Database configures the connections to PostgreSQL.
type Database struct {
	// Connection URL: postgresql://user:password@host:port/database. It may name several servers:
	// postgresql://user@db1,db2/attune?target_session_attrs=read-write. The parameter sslmode says what TLS must do:
	// verify-full (with sslrootcert=FILE) encrypts and checks the server, require only encrypts, disable is without.
	// If you do not set it, TLS is used if the server has it, and the password is never sent to another machine as
	// clear text.
	URL string `key:"url" default:"postgresql://postgres:postgres@localhost:5432/attune" secret:"url"`
	// Schema with the tables. The search_path of each connection is this schema, then public.
	Schema string `key:"schema" default:"attune"`
	// Most connections that one process opens. If it is too small, a replica runs fewer schedulers; the sum over all
	// processes must stay below max_connections of PostgreSQL.
	MaxConnections int32 `key:"max_connections" default:"20" range:"1..10000" published:"50"`
	// Connections that stay open while there is nothing to do.
	MinConnections int32 `key:"min_connections" range:"0..10000" published:"5"`
	// Timeout for opening one connection.
	ConnectTimeout time.Duration `key:"connect_timeout" default:"30s" range:"100ms..1h"`
	// An unused connection is closed after this time.
	IdleTimeout time.Duration `key:"idle_timeout" default:"10m" range:"1s..24h"`
	// Log every statement at level debug, without its values.
	LogStatements bool `key:"log_statements"`
}

// MessageQueue configures the connections to RabbitMQ.
type MessageQueue struct {
	// AMQP URL of the broker. Without a path the virtual host is "/". It may name several nodes of a cluster:
	// amqp://user:password@mq1,mq2/attune. An amqps URL takes cacertfile=FILE with the certificates of authorities
	// (PEM), also for the management API, and certfile and keyfile of a client. An amqp URL sends the password as
	// clear text.
	URL string `key:"url" default:"amqp://guest:guest@localhost:5672/%2f" secret:"url"`
	// URL of the broker's management API. Without a password it has the login of url. If you set only url, it is
	// derived from it: same hosts, user and password, port 15672 (15671 for amqps).
	ManagementURL string   `key:"management_url" default:"http://guest:guest@localhost:15672" secret:"url"`
	RabbitMQ      RabbitMQ `key:"rabbitmq"`
}

// RabbitMQ tunes the connections, consumers and queues.
type RabbitMQ struct {
	// Unacknowledged messages that one consumer may hold. If it is too small, batches are small; if it is too large,
	// one replica holds messages that another could process.
	PrefetchCount int `key:"prefetch_count" default:"256" range:"1..65535" published:"10"`
	// How long a dispatched message may wait in a worker's queue before it becomes a dead letter. It is an argument
	// of the queues: use the same value in every service.
	WorkerQueueTTL time.Duration `key:"worker_queue_ttl_ms" default:"5m" range:"1s..240h"`
	// Type of the queues. Queues of type quorum have copies on several nodes of a broker cluster. It is an argument of
	// the queues: use the same value in every service. Existing queues keep their type.
	QueueType string `key:"queue_type" default:"classic" oneof:"classic quorum"`
	// Timeout for connecting to the broker.
	ConnectionTimeout time.Duration `key:"connection_timeout_secs" default:"30s" range:"100ms..1h"`
	// AMQP heartbeat. A broken connection is noticed after about two heartbeats.
	Heartbeat time.Duration `key:"heartbeat_secs" default:"1m" range:"1s..1h"`
	// Longest pause between two attempts to reconnect. The pauses grow up to it.
	ReconnectDelay time.Duration `key:"reconnect_delay_secs" default:"5s" range:"100ms..1h"`
	// Timeout for the broker's confirmation of a published message. After it the message is published again.
	PublishTimeout time.Duration `key:"publish_timeout_secs" default:"5s" range:"100ms..1h"`
	DeadLetter     DeadLetter    `key:"dead_letter"`
}

// Quorum reports whether queues are of type quorum.
func (r RabbitMQ) Quorum() bool { return r.QueueType == "quorum" }

// DeadLetter configures the handling of rejected and expired messages.
type DeadLetter struct {
	// Process dead letters. If it is false, rejected and expired messages stay in the dead-letter queue until you
	// handle them; the queue and its bindings are declared anyway.
	Enabled bool `key:"enabled" default:"true"`
	// Dead-letter exchange. It is always attune.dlx: every Attune service declares its queues with it, and the
	// broker refuses a queue with another one. If you set another name, you get a warning at the start.
	Exchange string `key:"exchange" default:"attune.dlx"`
	// A dead letter leaves the ledger this long after its decision. Undecided dead letters stay.
	TTL time.Duration `key:"ttl_ms" default:"24h" range:"1m..8760h"`
}

// Server is the address of the API service. Workers pass it to actions, unless ATTUNE_API_URL is in their environment.
type Server struct {
	// Host of the API service, as actions reach it.
	Host string `key:"host" default:"0.0.0.0"`
	// Port of the API service.
	Port int `key:"port" default:"8080" range:"0..65535"`
}

// NoWorkersGrace is executor.no_workers_grace: unless it is set, there is none on the schema of an existing
// installation.
func (c *Config) NoWorkersGrace(adopted bool) time.Duration {
	grace, set := c.Executor.NoWorkersGrace, c.sources["executor.no_workers_grace"] != ""
	if adopted && !set && grace == Default().Executor.NoWorkersGrace {
		return 0
	}
	return grace
}

// Security has the keys of the section that concern execution; the others belong to the API service.
type Security struct {
	// Secret that signs the bearer tokens of the published API: use the same in every service. There is no default;
	// without it no execution gets a token and published tokens are refused. It has at least 16 characters: give a
	// new installation 32 or more. Published services accept a shorter one; change it in all of them first.
	JWTSecret string `key:"jwt_secret" secret:"value"`
	// Key that encrypts secret parameters and results, at least 32 characters. Use the same key in the executor, in
	// workers and wherever you request executions with secret parameters.
	EncryptionKey string `key:"encryption_key" secret:"value"`
}

// Executor configures an engine replica.
type Executor struct {
	// How long a worker may take to start a dispatched execution, unless the action has scheduled_timeout_seconds.
	// After it the execution is dispatched to another worker if retries are enabled and one has capacity; otherwise
	// it fails. A small value ends executions of busy workers; a large value delays the move away from a hung
	// worker.
	ScheduledTimeout time.Duration `key:"scheduled_timeout" default:"5m" range:"1s..240h"`
	// Time between two checks for dead workers: those without a heartbeat for heartbeat_interval ×
	// heartbeat_staleness_multiplier. Their unstarted executions are dispatched to other workers or retried;
	// lost_running decides the running ones. A large value delays this.
	TimeoutCheckInterval time.Duration `key:"timeout_check_interval" default:"1m" range:"100ms..24h"`
	// Run these checks, and those for executions that exceed scheduled_timeout or their own timeout. If it is false,
	// such executions stay unfinished until you end them.
	EnableTimeoutMonitor bool `key:"enable_timeout_monitor" default:"true"`
	// What happens to a running execution whose worker is dead: it is marked abandoned, or failed. It is retried either
	// way if its action allows retries.
	LostRunning string `key:"lost_running" default:"abandon" oneof:"abandon fail"`
	// The engine ends an execution that runs this much longer than its timeout_seconds, because its worker did not.
	// If it is too small, the engine can be faster than the worker that stops the process.
	TimeoutGrace time.Duration `key:"timeout_grace" default:"30s" range:"1s..24h"`
	// Time between two probes of all workers: whether they consume their queues and answer, and how long and how old
	// these queues are.
	HealthCheckInterval time.Duration `key:"health_check_interval" default:"30s" range:"100ms..24h"`
	// Limits from which a worker is degraded or unhealthy.
	Health Health `key:"health"`
	// Interval at which workers should send heartbeats.
	HeartbeatInterval time.Duration `key:"heartbeat_interval" default:"30s" range:"100ms..24h"`
	// A worker is stale, and gets no work, after this many intervals without a heartbeat. If it is too small, one
	// late heartbeat makes a worker stale; if it is too large, dead workers are noticed late.
	HeartbeatStalenessMultiplier float64 `key:"heartbeat_staleness_multiplier" default:"3" range:"1..1000"`
	// Time between two checks that mark stale workers inactive, and workers with new heartbeats active.
	HeartbeatCheckInterval time.Duration `key:"heartbeat_check_interval" default:"1m" range:"100ms..24h"`
	// What happens to an execution that no existing worker can run: fail it, or wait for such a worker. An execution
	// always waits for workers that are full, or alive without a connection to the broker.
	NoWorkers string `key:"no_workers" default:"fail" oneof:"fail wait"`
	// With no_workers: fail, how long an execution that was accepted while a fitting worker was alive waits for one to
	// come back: in its queue, as a retry, or as a task of a workflow under way. It counts from the last heartbeat. 0
	// fails it at once, like a new execution.
	NoWorkersGrace time.Duration `key:"no_workers_grace" default:"10m" range:"0s..240h" note:"0 on the schema of an existing installation"`
	// Apply timeout_seconds of actions. That of a workflow task always applies.
	HonourActionTimeoutSeconds string `key:"honour_action_timeout_seconds" default:"origin" oneof:"origin true false" note:"origin: true on a schema that attune-executor created, false on the schema of an existing installation, where the column had no effect"`
	// If the message of an event was lost, the event fires its rules only up to this age. Older events are only
	// reported.
	MaxEventAge time.Duration `key:"max_event_age" default:"24h" range:"1m..720h"`
	// Longest chain of rules in which the action of each emits the event that fires the next. The enforcement of the
	// next rule is disabled; this ends endless chains.
	RuleDepth int `key:"rule_depth" default:"32" range:"1..1000"`
	// Schedulers of a replica. All messages of one action go to the same scheduler, and each scheduler uses one
	// database connection. If database.max_connections is less than schedulers + 10, fewer run.
	Schedulers int `key:"schedulers" range:"0..64" note:"0: one per processor, at least 2 and at most 8"`
	// Timeout for stopping a replica.
	ShutdownTimeout time.Duration `key:"shutdown_timeout" default:"30s" range:"100ms..1h"`
	Queue           Queue         `key:"queue"`
	Retry           Retry         `key:"retry"`
	HTTP            HTTP          `key:"http"`
}

// Health limits the health of a worker. A degraded worker gets work after all others, an unhealthy one gets none.
type Health struct {
	// Workers whose health depends on failed executions: only those with the capability health_by_failures (asked),
	// since the action may be the cause, or all.
	ByFailures string `key:"by_failures" default:"asked" oneof:"asked all"`
	// A worker is degraded after this many consecutive failed executions.
	DegradedFailures int `key:"degraded_failures" default:"3" range:"1..1000000"`
	// A worker is unhealthy after this many consecutive failed executions.
	UnhealthyFailures int `key:"unhealthy_failures" default:"10" range:"1..1000000"`
	// A worker is degraded while this many executions wait in its queue.
	DegradedQueue int `key:"degraded_queue" default:"50" range:"1..1000000"`
	// A worker is unhealthy while this many executions wait in its queue.
	UnhealthyQueue int `key:"unhealthy_queue" default:"100" range:"1..1000000"`
	// A worker is degraded while this share of its executions fails.
	DegradedFailureRate float64 `key:"degraded_failure_rate" default:"0.3" range:"0..1"`
	// A worker is unhealthy while this share of its executions fails.
	UnhealthyFailureRate float64 `key:"unhealthy_failure_rate" default:"0.7" range:"0..1"`
	// Hosts, besides a worker's own, where its health endpoint may be: names or addresses, without ports.
	EndpointHosts []string `key:"endpoint_hosts"`
}

// Queue configures the admission queues.
type Queue struct {
	// Most executions that may wait in one queue. A full queue refuses further ones.
	MaxQueueLength int `key:"max_queue_length" default:"10000" range:"1..100000000"`
	// How long an execution may wait in a queue before it ends with status timeout; 0 is for ever. The time in a paused
	// queue does not count.
	Timeout time.Duration `key:"queue_timeout_seconds" default:"1h" range:"0s..8760h"`
	// Where a retry joins its queue: at the back, or in front of all waiting executions. A policy can override it.
	RetryPlace string `key:"retry_place" default:"back" oneof:"back front"`
	// Keep the table queue_stats up to date.
	EnableMetrics bool `key:"enable_metrics" default:"true"`
}

// Retry configures the retries of failed executions.
type Retry struct {
	// Retry failed executions. You can retry by hand in either case.
	Enabled bool `key:"enabled" default:"true"`
	// Apply max_retries of actions. That of an execution always applies.
	HonourActionMaxRetries string `key:"honour_action_max_retries" default:"origin" oneof:"origin true false" note:"origin: true on a schema that attune-executor created, false on the schema of an existing installation, where the column had no effect"`
	// Pause before the first retry.
	BaseDelay time.Duration `key:"base_delay" default:"1s" range:"0s..24h"`
	// Each further pause is this many times as long as the one before.
	Multiplier float64 `key:"multiplier" default:"2" range:"1..100"`
	// Longest pause, before jitter.
	MaxDelay time.Duration `key:"max_delay" default:"5m" range:"0s..240h"`
	// A pause becomes longer or shorter by up to this share, so that many retries do not come at once.
	Jitter float64 `key:"jitter" default:"0.2" range:"0..1"`
	// Retries of an execution that a worker got and never started, if its action allows fewer: it did nothing yet,
	// and its action is not the cause. With 0 only max_retries counts, as for started executions.
	MaxUnstarted int `key:"max_unstarted" default:"3" range:"0..100"`
}

// Policy is the retry policy of an engine.
func (r Retry) Policy() lifecycle.RetryPolicy {
	return lifecycle.RetryPolicy{
		Enabled: r.Enabled, BaseDelay: r.BaseDelay, Multiplier: r.Multiplier, MaxDelay: r.MaxDelay, Jitter: r.Jitter,
		Unstarted: r.MaxUnstarted, ActionRetries: lifecycle.ActionRetries(r.HonourActionMaxRetries),
	}
}

// HTTP configures the API of a replica.
type HTTP struct {
	// Address to listen on. Port 0 takes a free port; an empty address turns HTTP off. If you do not set it and the
	// port is taken, a free one is used.
	Listen string `key:"listen" default:"127.0.0.1:8080"`
	// File with hashed bearer tokens; without it a replica listens only on loopback. A line has a name, scopes (read,
	// operate, submit) separated by commas, and the SHA-256 of the token in hexadecimal. Changes take effect without a
	// restart.
	TokensFile string `key:"tokens_file"`
	// PEM file with a certificate. If you set it, HTTP is served only with TLS. Changes take effect without a
	// restart.
	TLSCertFile string `key:"tls_cert_file"`
	// PEM file with the key of the certificate.
	TLSKeyFile string `key:"tls_key_file"`
	// Requests that a token may make in a second, in bursts of twice as many; 0 for no limit.
	RateLimit int `key:"rate_limit" default:"200" range:"0..1000000"`
	// Requests without a valid token that an address may make in a second, so that guessing a token is slow; 0 for no
	// limit.
	UnauthorizedRateLimit int `key:"unauthorized_rate_limit" default:"5" range:"0..1000000"`
}

// Worker configures the reference worker.
type Worker struct {
	// Name of the worker, unique in the installation; worker-HOSTNAME if empty.
	Name string `key:"name"`
	// Kind of worker.
	Type string `key:"worker_type" default:"local" oneof:"local remote container"`
	// Host that others see; the host name if empty.
	Host string `key:"host"`
	// Port that others see; 0 for none.
	Port int `key:"port" range:"0..65535"`
	// Runtimes of the worker; shell, native and those of interpreters if empty.
	Runtimes []string `key:"runtimes"`
	// Command that runs the entrypoints of a runtime, by runtime. It overrides the execution_config of the runtime.
	// If it is empty and the worker has a folder of packs, the worker finds python3, node, ruby and perl itself.
	Interpreters map[string][]string `key:"interpreters"`
	// Folder with your packs, each with its actions folder; packs_base_dir if empty.
	PacksDir string `key:"packs_dir"`
	// Labels that placement rules can require.
	Labels map[string]string `key:"labels"`
	// Taints that keep executions away that do not tolerate them.
	Taints []Taint `key:"taints"`
	// Further capabilities to announce.
	Capabilities map[string]any `key:"capabilities"`
	// Most executions that run at once.
	MaxConcurrentTasks int `key:"max_concurrent_tasks" default:"10" range:"1..10000"`
	// Accept several executions in one message.
	BatchMessages bool `key:"batch_messages" default:"true"`
	// Report several completed executions in one message. No other program reads such messages: leave it false if
	// you bind a queue of your own to execution.completed.
	BatchCompletions bool `key:"batch_completions"`
	// Time between two heartbeats. It must be shorter than the time after which the executor calls a worker stale.
	HeartbeatInterval time.Duration `key:"heartbeat_interval" default:"10s" range:"100ms..1h" published:"30s"`
	// Timeout of an execution if neither it nor its action has one.
	TaskTimeout time.Duration `key:"task_timeout" default:"5m" range:"1s..8760h"`
	// How long a stopping worker waits for its running executions. Then it stops them.
	ShutdownTimeout time.Duration `key:"shutdown_timeout" default:"30s" range:"100ms..24h"`
	// Bytes of standard output that are kept; the rest is cut.
	MaxStdoutBytes int64 `key:"max_stdout_bytes" default:"10485760" range:"0..1073741824"`
	// Bytes of standard error that are kept; the rest is cut.
	MaxStderrBytes int64 `key:"max_stderr_bytes" default:"10485760" range:"0..1073741824"`
	// Most bytes of a result as JSON, in which a control character takes six. In a larger result the output is cut
	// and the data is left out.
	MaxResultBytes int64 `key:"max_result_bytes" default:"16777216" range:"65536..16777216"`
	// User that actions run as, USER or USER:GROUP, as names or numbers; the worker's own if empty. Without the
	// rights for it the worker does not start.
	RunAs string `key:"run_as"`
	// Most processes and threads of that user, over all actions; 0 sets no limit. It has no effect on root.
	MaxProcesses int64 `key:"max_processes" range:"0..4194304"`
	// Bytes of memory that one process of an action may write to; 0 sets no limit.
	MaxMemoryBytes int64 `key:"max_memory_bytes" range:"0..1125899906842624"`
	// Files that one process of an action may have open; 0 sets no limit.
	MaxOpenFiles int64 `key:"max_open_files" range:"0..1073741824"`
	// Processor time that one process of an action may use; 0 sets no limit.
	MaxCPUTime time.Duration `key:"max_cpu_time" range:"0s..8760h"`
}

// Taint keeps executions without a toleration away from a worker.
type Taint struct {
	Key    string `json:"key" yaml:"key"`
	Value  string `json:"value,omitempty" yaml:"value,omitempty"`
	Effect string `json:"effect" yaml:"effect"`
}

// Telemetry configures traces. They are off without an endpoint.
type Telemetry struct {
	// Base URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://localhost:4318. Empty turns
	// traces off. The variable OTEL_EXPORTER_OTLP_ENDPOINT sets it too, if you do not.
	OTLPEndpoint string `key:"otlp_endpoint" secret:"url"`
	// Share of the traces that are sent. A client that sends a traceparent decides for its own.
	SampleRatio float64 `key:"sample_ratio" default:"1" range:"0..1"`
	// File with headers for the collector, such as a token: a line NAME: VALUE each.
	HeadersFile string `key:"headers_file"`
}

// Retention configures when finished rows are deleted.
type Retention struct {
	// History of executions and workers, decisions about lost executions, and past alerts.
	History time.Duration `key:"history" default:"720h" range:"1h..87600h"`
	// Events.
	Events time.Duration `key:"events" default:"720h" range:"1h..87600h"`
	// Inactive workers, since their last heartbeat.
	InactiveWorkers time.Duration `key:"inactive_workers" default:"168h" range:"1h..87600h"`
	// Completed executions with their attempts, workflow logs and inquiries, and enforcements; 0 keeps them for
	// ever.
	Executions time.Duration `key:"executions" default:"2160h" range:"0s..87600h" note:"on the schema of an existing installation only if you set it"`
	// Actions of operators (table operator_audit); 0 keeps them for ever.
	OperatorAudit time.Duration `key:"operator_audit" default:"2160h" range:"0s..87600h"`
	// Unused queues of groups.
	GroupQueues time.Duration `key:"group_queues" default:"720h" range:"1h..87600h"`
	// Killed replicas. Until then they are listed and raise the alert replica_silent.
	SilentReplicas time.Duration `key:"silent_replicas" default:"15m" range:"1m..8760h"`
}

// StaleAfter is the age of the last heartbeat at which a worker gets no more work.
func (e Executor) StaleAfter() time.Duration {
	return time.Duration(float64(e.HeartbeatInterval) * e.HeartbeatStalenessMultiplier)
}

// SchedulersOn is the number of schedulers on a machine with so many processors.
func (e Executor) SchedulersOn(processors int) int {
	if e.Schedulers > 0 {
		return e.Schedulers
	}
	return min(max(processors, 2), 8)
}

// OrphanInterval is the time between two checks for executions of dead workers; negative disables them.
func (e Executor) OrphanInterval() time.Duration {
	if !e.EnableTimeoutMonitor {
		return -1
	}
	return e.TimeoutCheckInterval
}

// Default returns the built-in configuration.
func Default() *Config {
	c := &Config{Alerts: defaultAlerts(), sources: map[string]string{}}
	for _, s := range c.settings() {
		if text := s.tag.Get("default"); text != "" {
			if err := s.assign(text); err != nil {
				panic(s.key + ": " + err.Error())
			}
		}
	}
	return c
}
