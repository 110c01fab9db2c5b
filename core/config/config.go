package config

import "time"

// Config is everything that can be configured. The zero value is not usable;
// begin with Default or Load.
//
// The field tags carry what the loader and Explain need: koanf is the key,
// range and oneof what is allowed, secret how it is masked (url hides the
// password of a URL, value hides all), published the published default where
// ours differs, note what the default means.
type Config struct {
	// The name of this process. If it is set, log lines, the connections to the database
	// (application_name) and those to the broker (client properties) carry it.
	ServiceName string `koanf:"service_name"`
	// A word for the installation, such as development or production. If it is set, log
	// lines and connections to the broker carry it.
	Environment string `koanf:"environment"`
	// The folder in which workflow logs and artifacts live.
	ArtifactsDir string `koanf:"artifacts_dir"`
	// The folder that holds the packs; worker.packs_dir wins over it.
	PacksBaseDir string `koanf:"packs_base_dir" published:"/opt/attune/packs"`
	// The folder in which what packs need is installed, below PACK/RUNTIME; workers
	// use the interpreters there and install nothing.
	RuntimeEnvsDir string `koanf:"runtime_envs_dir" published:"/opt/attune/runtime_envs"`

	Server       Server       `koanf:"server"`
	Database     Database     `koanf:"database"`
	MessageQueue MessageQueue `koanf:"message_queue"`
	Security     Security     `koanf:"security"`
	Executor     Executor     `koanf:"executor"`
	Worker       Worker       `koanf:"worker"`
	Retention    Retention    `koanf:"retention"`

	// Alerts are the alert rules by name. The built-in ones are changed by
	// naming them, others are added by a new name.
	Alerts map[string]*AlertRule `koanf:"alerts"`

	// Warnings are the lines a process should log once after loading: sections
	// that were ignored and keys that have no effect.
	Warnings []string `koanf:"-"`
	// Path is the file that was read, empty if none was.
	Path string `koanf:"-"`

	sources map[string]string // where a value came from; absent means default
}

// Named is a name for connections to the database, with that of the service before it
// if it was set.
func (c *Config) Named(name string) string {
	if c.sources["service_name"] == "" || c.ServiceName == "" {
		return name
	}
	return c.ServiceName + " " + name
}

// Names are service_name and environment, as far as they were set.
func (c *Config) Names() map[string]string {
	names := map[string]string{}
	for key, value := range map[string]string{"service_name": c.ServiceName, "environment": c.Environment} {
		if c.sources[key] != "" && value != "" {
			names[key] = value
		}
	}
	return names
}

// Database says how to reach PostgreSQL.
type Database struct {
	// The connection URL (postgresql://user:password@host:port/database).
	URL string `koanf:"url" secret:"url"`
	// The schema that holds the tables; search_path is set to it and public.
	Schema string `koanf:"schema"`
	// The most connections one process opens.
	MaxConnections int32 `koanf:"max_connections" range:"1..10000" published:"50"`
	// The number of connections kept open when there is nothing to do.
	MinConnections int32 `koanf:"min_connections" range:"0..10000" published:"5"`
	// How long opening one connection may take.
	ConnectTimeout time.Duration `koanf:"connect_timeout" range:"100ms..1h"`
	// How long an unused connection is kept.
	IdleTimeout time.Duration `koanf:"idle_timeout" range:"1s..24h"`
	// Log every statement at level debug, without its values.
	LogStatements bool `koanf:"log_statements"`
}

// MessageQueue says how to reach RabbitMQ.
type MessageQueue struct {
	// The AMQP URL; without a path the virtual host is "/".
	URL string `koanf:"url" secret:"url"`
	// The URL of the management API. If only url is set, it is derived from it
	// (same host, user and password, port 15672).
	ManagementURL string   `koanf:"management_url" secret:"url"`
	RabbitMQ      RabbitMQ `koanf:"rabbitmq"`
}

// RabbitMQ tunes the use of the broker.
type RabbitMQ struct {
	// How many unacknowledged messages a consumer may hold.
	PrefetchCount int `koanf:"prefetch_count" range:"1..65535" published:"10"`
	// How long a dispatched message may wait in a worker's queue. It is an
	// argument of the queues, so every service must use the same value.
	WorkerQueueTTL time.Duration `koanf:"worker_queue_ttl_ms" range:"1s..240h"`
	// How long connecting may take.
	ConnectionTimeout time.Duration `koanf:"connection_timeout_secs" range:"100ms..1h"`
	// The AMQP heartbeat.
	Heartbeat time.Duration `koanf:"heartbeat_secs" range:"1s..1h"`
	// The longest pause between two attempts to reconnect.
	ReconnectDelay time.Duration `koanf:"reconnect_delay_secs" range:"100ms..1h"`
	// How long a publish may wait for its confirmation.
	PublishTimeout time.Duration `koanf:"publish_timeout_secs" range:"100ms..1h"`
	DeadLetter     DeadLetter    `koanf:"dead_letter"`
}

// DeadLetter configures what happens to messages nobody could take.
type DeadLetter struct {
	// Handle dead letters. Off, rejected and expired messages stay in the dead-letter
	// queue until an operator handles them; queue and routes are declared all the
	// same.
	Enabled bool `koanf:"enabled"`
	// The dead-letter exchange. It is always attune.dlx: all participants declare their
	// queues with it, and the broker refuses a queue with another. A process that finds
	// another name here warns at its start.
	Exchange string `koanf:"exchange"`
	// How long dead letters are kept in the ledger after they were decided. Those
	// that wait for a person are kept until one decides.
	TTL time.Duration `koanf:"ttl_ms" range:"1m..8760h"`
}

// Server says where the API service listens. Actions are told, unless the worker's
// environment has ATTUNE_API_URL.
type Server struct {
	// The host of the API service as actions reach it.
	Host string `koanf:"host"`
	// The port of the API service.
	Port int `koanf:"port" range:"1..65535"`
}

// Security holds the security keys that concern execution; the others of the
// section belong to the API service.
type Security struct {
	// The secret that signs the bearer tokens of the published API, the same in every
	// service. Without it no execution gets a token, and published tokens are refused:
	// there is no built-in secret.
	JWTSecret string `koanf:"jwt_secret" secret:"value"`
	// The key that encrypts secret parameters and results, at least 32 characters.
	// Whoever requests executions with such parameters, runs them, or puts secrets
	// together in workflows needs the same one.
	EncryptionKey string `koanf:"encryption_key" secret:"value"`
}

// Executor configures an engine replica.
type Executor struct {
	// How long a worker may take to start what it was handed, unless the action
	// says (scheduled_timeout_seconds). After that the execution goes to another
	// worker if repetitions are enabled and one has room, and else fails.
	ScheduledTimeout time.Duration `koanf:"scheduled_timeout" range:"1s..240h"`
	// How often work of workers that are gone is looked for, those whose heartbeat
	// is older than heartbeat_interval × heartbeat_staleness_multiplier: what they
	// were handed and never started goes to another worker, or is closed and
	// repeated; what ran there is abandoned.
	TimeoutCheckInterval time.Duration `koanf:"timeout_check_interval" range:"100ms..24h"`
	// Look for it at all, and for what takes too long to start or to end.
	EnableTimeoutMonitor bool `koanf:"enable_timeout_monitor"`
	// What becomes of an execution whose worker is gone while it runs: abandoned
	// or failed. Either way it is repeated if its action allows repetitions.
	LostRunning string `koanf:"lost_running" oneof:"abandon fail"`
	// How long beyond its action's timeout_seconds an execution may run before the
	// engine ends it, because its worker has forgotten to.
	TimeoutGrace time.Duration `koanf:"timeout_grace" range:"1s..24h"`
	// How often workers are looked after: whether their queues are consumed, how
	// deep these are and how old, and whether they answer.
	HealthCheckInterval time.Duration `koanf:"health_check_interval" range:"100ms..24h"`
	// From when on a worker counts as degraded, and as unhealthy.
	Health Health `koanf:"health"`
	// How often workers are expected to send a heartbeat.
	HeartbeatInterval time.Duration `koanf:"heartbeat_interval" range:"100ms..24h"`
	// A worker is stale after this many intervals without a heartbeat.
	HeartbeatStalenessMultiplier float64 `koanf:"heartbeat_staleness_multiplier" range:"1..1000"`
	// How often stale workers are looked for and marked inactive, and those whose
	// heartbeats have resumed active.
	HeartbeatCheckInterval time.Duration `koanf:"heartbeat_check_interval" range:"100ms..24h"`
	// What happens to an execution that no worker could run: fail it, or wait
	// until there is one. Workers that are full, or alive but cut off from the
	// broker, are waited for either way.
	NoWorkers string `koanf:"no_workers" oneof:"fail wait"`
	// Whether timeout_seconds of an action takes effect; that of a workflow task always does.
	HonourActionTimeoutSeconds string `koanf:"honour_action_timeout_seconds" oneof:"origin true false" note:"by origin: true on a schema that this program made, false on that of an existing installation, where the column had no effect"`
	// An event whose message was lost fires its rules if it is found before it is this
	// old. Older ones are only reported: what fires because of them would come too late.
	MaxEventAge time.Duration `koanf:"max_event_age" range:"1m..720h"`
	// How many rules may follow each other, each fired by an event that the action of the
	// one before has emitted. The next one fires nothing: its enforcement is disabled.
	RuleDepth int `koanf:"rule_depth" range:"1..1000"`
	// How many schedulers a replica runs. Each decides about the messages of its actions,
	// a batch at a time, over a database connection of its own; all messages of an action
	// belong to one. There are fewer if database.max_connections leaves no room for them:
	// that many and ten more connections are needed.
	Schedulers int `koanf:"schedulers" range:"0..64" note:"0: one per processor, at least 2 and at most 8"`
	// How long a replica may take to stop.
	ShutdownTimeout time.Duration `koanf:"shutdown_timeout" range:"100ms..1h"`
	Queue           Queue         `koanf:"queue"`
	Retry           Retry         `koanf:"retry"`
	HTTP            HTTP          `koanf:"http"`
}

// Health says from when on a worker is degraded, which puts it behind the others,
// and unhealthy, which keeps all work from it.
type Health struct {
	// Whose failed executions speak against the worker they ran on: only that of
	// workers that ask for it by the capability health_by_failures, since an action
	// that fails is not its worker's fault, or that of all.
	ByFailures string `koanf:"by_failures" oneof:"asked all"`
	// Degraded after so many failures one after the other.
	DegradedFailures int `koanf:"degraded_failures" range:"1..1000000"`
	// Unhealthy after so many.
	UnhealthyFailures int `koanf:"unhealthy_failures" range:"1..1000000"`
	// Degraded when so many executions wait in its queue.
	DegradedQueue int `koanf:"degraded_queue" range:"1..1000000"`
	// Unhealthy when so many wait.
	UnhealthyQueue int `koanf:"unhealthy_queue" range:"1..1000000"`
	// Degraded when this share of its executions failed.
	DegradedFailureRate float64 `koanf:"degraded_failure_rate" range:"0..1"`
	// Unhealthy when this share failed.
	UnhealthyFailureRate float64 `koanf:"unhealthy_failure_rate" range:"0..1"`
}

// Queue limits the admission queues.
type Queue struct {
	// How many executions may wait in one queue; more are refused.
	MaxQueueLength int `koanf:"max_queue_length" range:"1..100000000"`
	// How long an execution may wait in a queue; 0 for ever. While a queue is
	// paused the time of those who wait in it does not run.
	Timeout time.Duration `koanf:"queue_timeout_seconds" range:"0s..8760h"`
	// Where a retry joins its line: at the back like everybody who comes now, or
	// in front of all who wait. A policy may say another.
	RetryPlace string `koanf:"retry_place" oneof:"back front"`
	// Keep the table queue_stats up to date.
	EnableMetrics bool `koanf:"enable_metrics"`
}

// Retry configures how failed executions are repeated.
type Retry struct {
	// Repeat at all. By hand it can be done either way.
	Enabled bool `koanf:"enabled"`
	// Whether max_retries of an action takes effect; that of an execution always does.
	HonourActionMaxRetries string `koanf:"honour_action_max_retries" oneof:"origin true false" note:"by origin: true on a schema that this program made, false on that of an existing installation, where actions ran once whatever the column says"`
	// The pause before the first repetition.
	BaseDelay time.Duration `koanf:"base_delay" range:"0s..24h"`
	// How much longer each further pause is.
	Multiplier float64 `koanf:"multiplier" range:"1..100"`
	// The longest pause, before it is spread.
	MaxDelay time.Duration `koanf:"max_delay" range:"0s..240h"`
	// The share by which a pause is spread in both directions.
	Jitter float64 `koanf:"jitter" range:"0..1"`
	// How often an execution is repeated that was handed to a worker and never
	// picked up, if its action allows fewer repetitions: it has done nothing yet,
	// and its action is not to blame. 0 leaves it to the action's max_retries, as
	// for all that was started or that no worker could be found for.
	MaxUnstarted int `koanf:"max_unstarted" range:"0..100"`
}

// HTTP configures the API of a replica.
type HTTP struct {
	// The address to listen on; port 0 takes a free one, empty turns HTTP off.
	// Only while it is not set, a taken port is replaced by a free one.
	Listen string `koanf:"listen"`
	// The file with the hashed bearer tokens, without which a replica does not
	// listen beyond loopback. A line is a name, scopes (read, operate, submit)
	// separated by commas, and the SHA-256 of the token in hexadecimal. It is
	// read again when it changes.
	TokensFile string `koanf:"tokens_file"`
	// The PEM file of a certificate, with which HTTP is served with TLS only. It is
	// read again when it changes.
	TLSCertFile string `koanf:"tls_cert_file"`
	// The PEM file of the certificate's key.
	TLSKeyFile string `koanf:"tls_key_file"`
}

// Worker configures the reference worker.
type Worker struct {
	// The worker's name, unique in the installation; worker-HOSTNAME if empty.
	Name string `koanf:"name"`
	// The kind of worker.
	Type string `koanf:"worker_type" oneof:"local remote container"`
	// The host others see; the host name if empty.
	Host string `koanf:"host"`
	// The port others see; 0 for none.
	Port int `koanf:"port" range:"0..65535"`
	// The runtimes the worker offers; shell, native and those of interpreters if
	// empty.
	Runtimes []string `koanf:"runtimes"`
	// The command that runs the entrypoints of a runtime, by runtime. It wins over the
	// execution_config of the runtime. A worker with a folder of packs finds python3,
	// node, ruby and perl by itself if this is empty.
	Interpreters map[string][]string `koanf:"interpreters"`
	// The folder that holds the packs, each with its actions folder; packs_base_dir
	// if empty.
	PacksDir string `koanf:"packs_dir"`
	// Labels that placement rules can ask for.
	Labels map[string]string `koanf:"labels"`
	// Taints that keep executions away which do not tolerate them.
	Taints []Taint `koanf:"taints"`
	// Further capabilities to announce.
	Capabilities map[string]any `koanf:"capabilities"`
	// How many executions run at once.
	MaxConcurrentTasks int `koanf:"max_concurrent_tasks" range:"1..10000"`
	// Whether several executions may be handed to the worker in one message.
	BatchMessages bool `koanf:"batch_messages"`
	// Whether the worker reports several ends in one message, which no other program reads:
	// leave it false if a queue of your own is bound to execution.completed.
	BatchCompletions bool `koanf:"batch_completions"`
	// How often a heartbeat is sent.
	HeartbeatInterval time.Duration `koanf:"heartbeat_interval" range:"100ms..1h" published:"30s"`
	// How long an execution may run when neither it nor its action says.
	TaskTimeout time.Duration `koanf:"task_timeout" range:"1s..8760h"`
	// How long running executions may take to end when the worker stops.
	ShutdownTimeout time.Duration `koanf:"shutdown_timeout" range:"100ms..24h"`
	// How many bytes of standard output are kept.
	MaxStdoutBytes int64 `koanf:"max_stdout_bytes" range:"0..1073741824"`
	// How many bytes of standard error are kept.
	MaxStderrBytes int64 `koanf:"max_stderr_bytes" range:"0..1073741824"`
	// How many bytes a result may have as JSON, in which a control character takes
	// six. Output is cut for it, data is left out.
	MaxResultBytes int64 `koanf:"max_result_bytes" range:"65536..16777216"`
	// The user that actions run as: USER or USER:GROUP, names or numbers. A worker
	// without the rights for it does not start. The worker's own if empty.
	RunAs string `koanf:"run_as"`
	// How many processes and threads that user may have, all actions together; 0 sets no
	// limit. It does not bind root.
	MaxProcesses int64 `koanf:"max_processes" range:"0..4194304"`
	// How much memory one process of an action may write to, in bytes; 0 sets no limit.
	MaxMemoryBytes int64 `koanf:"max_memory_bytes" range:"0..1125899906842624"`
	// How many files one process of an action may have open; 0 sets no limit.
	MaxOpenFiles int64 `koanf:"max_open_files" range:"0..1073741824"`
	// How much processor time one process of an action may use; 0 sets no limit.
	MaxCPUTime time.Duration `koanf:"max_cpu_time" range:"0s..8760h"`
}

// Taint keeps executions away from a worker that do not tolerate it.
type Taint struct {
	Key    string `json:"key" yaml:"key"`
	Value  string `json:"value,omitempty" yaml:"value,omitempty"`
	Effect string `json:"effect" yaml:"effect"`
}

// Retention says how long finished things are kept.
type Retention struct {
	// The history of executions and workers, what was decided about lost work, and
	// past alerts.
	History time.Duration `koanf:"history" range:"1h..87600h"`
	// Events.
	Events time.Duration `koanf:"events" range:"1h..87600h"`
	// Workers that are inactive and have not been heard of.
	InactiveWorkers time.Duration `koanf:"inactive_workers" range:"1h..87600h"`
	// Executions after their end, with their attempts, workflow logs and inquiries, and
	// enforcements; 0 keeps them for ever.
	Executions time.Duration `koanf:"executions" range:"0s..87600h" note:"on the schema of an existing installation only if it is set"`
	// What operators did (operator_audit); 0 keeps it for ever.
	OperatorAudit time.Duration `koanf:"operator_audit" range:"0s..87600h"`
	// Queues of groups that nobody uses.
	GroupQueues time.Duration `koanf:"group_queues" range:"1h..87600h"`
	// Replicas that were killed: until then they are listed and raise the alert
	// replica_silent.
	SilentReplicas time.Duration `koanf:"silent_replicas" range:"1m..8760h"`
}

// StaleAfter is the age of its last heartbeat from which a worker is not to be
// trusted with work.
func (e Executor) StaleAfter() time.Duration {
	return time.Duration(float64(e.HeartbeatInterval) * e.HeartbeatStalenessMultiplier)
}

// SchedulersOn is how many schedulers a replica runs on a machine with so many processors.
func (e Executor) SchedulersOn(processors int) int {
	if e.Schedulers > 0 {
		return e.Schedulers
	}
	return min(max(processors, 2), 8)
}

// OrphanInterval is how often the work of workers that are gone is looked for;
// negative when it is not.
func (e Executor) OrphanInterval() time.Duration {
	if !e.EnableTimeoutMonitor {
		return -1
	}
	return e.TimeoutCheckInterval
}

// Default returns the built-in configuration.
func Default() *Config {
	return &Config{
		ServiceName:  "attune",
		Environment:  "development",
		ArtifactsDir: "/opt/attune/artifacts",
		Server:       Server{Host: "0.0.0.0", Port: 8080},
		Database: Database{ //nolint:gosec // the published default
			URL:            "postgresql://postgres:postgres@localhost:5432/attune",
			Schema:         "attune",
			MaxConnections: 20,
			MinConnections: 0,
			ConnectTimeout: 30 * time.Second,
			IdleTimeout:    10 * time.Minute,
		},
		MessageQueue: MessageQueue{ //nolint:gosec // the published default
			URL:           "amqp://guest:guest@localhost:5672/%2f",
			ManagementURL: "http://guest:guest@localhost:15672",
			RabbitMQ: RabbitMQ{
				PrefetchCount:     256,
				WorkerQueueTTL:    5 * time.Minute,
				ConnectionTimeout: 30 * time.Second,
				Heartbeat:         time.Minute,
				ReconnectDelay:    5 * time.Second,
				PublishTimeout:    5 * time.Second,
				DeadLetter:        DeadLetter{Enabled: true, Exchange: deadLetterExchange, TTL: 24 * time.Hour},
			},
		},
		Executor: Executor{
			ScheduledTimeout:     5 * time.Minute,
			TimeoutCheckInterval: time.Minute,
			EnableTimeoutMonitor: true,
			LostRunning:          "abandon",
			TimeoutGrace:         30 * time.Second,
			Health: Health{
				ByFailures: "asked", DegradedFailures: 3, UnhealthyFailures: 10, DegradedQueue: 50, UnhealthyQueue: 100,
				DegradedFailureRate: 0.3, UnhealthyFailureRate: 0.7,
			},
			HealthCheckInterval:          30 * time.Second,
			HeartbeatInterval:            30 * time.Second,
			HeartbeatStalenessMultiplier: 3,
			HeartbeatCheckInterval:       time.Minute,
			NoWorkers:                    "fail",
			HonourActionTimeoutSeconds:   "origin",
			MaxEventAge:                  24 * time.Hour,
			RuleDepth:                    32,
			ShutdownTimeout:              30 * time.Second,
			Queue: Queue{MaxQueueLength: 10000, Timeout: time.Hour, RetryPlace: "back",
				EnableMetrics: true},
			Retry: Retry{
				Enabled: true, HonourActionMaxRetries: "origin", BaseDelay: time.Second, Multiplier: 2,
				MaxDelay: 5 * time.Minute, Jitter: 0.2, MaxUnstarted: 3,
			},
			HTTP: HTTP{Listen: "127.0.0.1:8080"},
		},
		Worker: Worker{
			Type:               "local",
			MaxConcurrentTasks: 10,
			BatchMessages:      true,
			HeartbeatInterval:  10 * time.Second,
			TaskTimeout:        5 * time.Minute,
			ShutdownTimeout:    30 * time.Second,
			MaxStdoutBytes:     10 << 20,
			MaxResultBytes:     16 << 20,
			MaxStderrBytes:     10 << 20,
		},
		Retention: Retention{
			History: 720 * time.Hour, Events: 720 * time.Hour, InactiveWorkers: 168 * time.Hour,
			GroupQueues:    720 * time.Hour,
			SilentReplicas: 15 * time.Minute, Executions: 2160 * time.Hour, OperatorAudit: 2160 * time.Hour,
		},
		Alerts:  defaultAlerts(),
		sources: map[string]string{},
	}
}
