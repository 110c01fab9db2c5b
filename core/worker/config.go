package worker

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/worker/process"
)

// Defaults of a Config.
const (
	CancelPollDefault        = 3 * time.Second
	HeartbeatIntervalDefault = 10 * time.Second
	KillGraceDefault         = 5 * time.Second
	MaxConcurrentDefault     = 10
	MaxOutputBytesDefault    = 10 << 20
	MaxResultBytesDefault    = jsonvalue.Bytes
	QueueTTLDefault          = 300 * time.Second
	ShutdownTimeoutDefault   = 30 * time.Second
	StaleAfterDefault        = 90 * time.Second
	TaskTimeoutDefault       = 300 * time.Second
)

// NameVariable is the environment variable that names the worker if the configuration does not.
const NameVariable = "ATTUNE_WORKER_NAME"

// Taint keeps away executions that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Config configures a worker. The zero value is a worker named after its host.
type Config struct {
	// ActionTimeouts says whether timeout_seconds of an action takes effect: true, false, or
	// origin, which is true except on the schema of an existing installation. Empty means true.
	ActionTimeouts string
	// Actions are the functions this worker runs itself.
	Actions Actions
	// APIURL and ArtifactsDir are passed on to processes.
	APIURL, ArtifactsDir string
	// CancelPoll is the interval at which the rows of running executions are read for cancels whose
	// message was lost.
	CancelPoll time.Duration
	// Capabilities are announced with the worker's own, which override them. Exceptions are
	// runtime_versions and detected_interpreters: the worker detects them only if they are not
	// given.
	Capabilities map[string]any
	// Env is added to the environment of every process, as NAME=value. Processes get
	// the worker's own environment too, without what configures Attune.
	Env []string
	// FoundInterpreters serve runtimes for which neither Interpreters nor the execution_config of
	// the runtime's row names one.
	FoundInterpreters map[string][]string
	// HeartbeatInterval is the pause between heartbeats.
	HeartbeatInterval time.Duration
	// HealthURL returns the address of the worker's health endpoint, which the engine then probes.
	// It is called at the start. Nil or an empty address means no endpoint.
	HealthURL func() string
	// Host and Port are the address that others see; the host name if empty.
	Host string
	Port int
	// Interpreters are the commands that run the entrypoints of a runtime, by name. They override
	// the execution_config of the runtime's row. Shell and native always exist.
	Interpreters map[string][]string
	// Keyring opens the secret parameters of executions and seals secret results. Without a key,
	// executions with secret parameters fail.
	Keyring secret.Keyring
	// KillGrace is the delay between stopping an execution and killing it.
	KillGrace time.Duration
	// Labels are matched by placement rules.
	Labels map[string]string
	// Limits bound each process of an action.
	Limits process.Limits
	// MaxConcurrent is how many executions run at once.
	MaxConcurrent int
	// MaxStdoutBytes and MaxStderrBytes bound the stored output.
	MaxStdoutBytes, MaxStderrBytes int64
	// MaxResultBytes bounds a result as JSON: output is cut, data is dropped.
	MaxResultBytes int64
	// Name identifies the worker: a known name is the same worker again. If empty it is
	// ATTUNE_WORKER_NAME, else worker-HOSTNAME.
	Name string
	// PacksDir holds the packs: PACK/actions/ENTRYPOINT. Without it only absolute entrypoints and
	// functions can run.
	PacksDir string
	// QueueTTL is the lifetime of a dispatch in the queue. It is an argument of the queue, so all
	// programs that declare the queue must use the same value.
	QueueTTL time.Duration
	// Replace takes the name from a living process, whose running executions are abandoned. Without it Start refuses
	// with a TakenError.
	Replace bool
	// RunAs is the user of action processes, USER or USER:GROUP; the user of this process if empty.
	// The worker must be root, or have the rights to change the user and the owner of files and to
	// signal processes of the other user; otherwise it does not start.
	RunAs string
	// Runtimes are the runtimes to announce. If empty: shell, native and those of Interpreters.
	Runtimes []string
	// RuntimeEnvsDir is passed on to processes. An interpreter that was installed there for a pack
	// runs the actions of the pack.
	RuntimeEnvsDir string
	// SingleMessages requests one message for each dispatch. The worker still reads batches from
	// its queue.
	SingleMessages bool
	// BatchCompletions reports ends that are written together in one message, while an engine reads
	// such messages. Other programs that listen for completions do not see them.
	BatchCompletions bool
	// ShutdownTimeout is how long running executions may take to end on Stop.
	ShutdownTimeout time.Duration
	// StaleAfter is the age from which the heartbeat of a process with this name says that it is dead; the engine's
	// setting.
	StaleAfter time.Duration
	// Taints keep away executions that do not tolerate them.
	Taints []Taint
	// TaskTimeout is the timeout of an execution whose row and action set none.
	TaskTimeout time.Duration
	// TempDir holds a folder for each running execution: its TMPDIR, with the parameter file and
	// the script of inline code. The system's if empty.
	TempDir string
	// Tokens issues the API tokens of actions. Without it they get none.
	Tokens TokenSource
	// Type is local, remote or container; local if empty.
	Type string
	// Version is announced as worker_version.
	Version string

	chosen map[string]bool // the configured runtimes of Interpreters
	user   *process.User   // of RunAs

	probeTimeout time.Duration // probeTimeoutDefault if zero; tests change it
}

// TokenSource issues the API token of an action; secret.Signer is one.
type TokenSource interface {
	Sign(claims secret.ExecutionClaims) (string, error)
}

func (c Config) withDefaults() Config {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	orText(&c.Host, host)
	orText(&c.Name, os.Getenv(NameVariable))
	orText(&c.Name, "worker-"+host)
	orText(&c.Type, "local")
	orText(&c.Version, "dev")
	orNumber(&c.MaxConcurrent, MaxConcurrentDefault)
	orNumber(&c.MaxStdoutBytes, MaxOutputBytesDefault)
	orNumber(&c.MaxStderrBytes, MaxOutputBytesDefault)
	orNumber(&c.MaxResultBytes, MaxResultBytesDefault)
	orNumber(&c.CancelPoll, CancelPollDefault)
	orNumber(&c.HeartbeatInterval, HeartbeatIntervalDefault)
	orNumber(&c.KillGrace, KillGraceDefault)
	orNumber(&c.QueueTTL, QueueTTLDefault)
	orNumber(&c.ShutdownTimeout, ShutdownTimeoutDefault)
	orNumber(&c.StaleAfter, StaleAfterDefault)
	orNumber(&c.TaskTimeout, TaskTimeoutDefault)
	orNumber(&c.probeTimeout, probeTimeoutDefault)
	c.chosen = map[string]bool{}
	for name, command := range c.Interpreters {
		c.chosen[placement.NormalizeRuntime(name)] = len(command) > 0
	}
	c.Interpreters = interpreters(c.FoundInterpreters, c.Interpreters)
	if len(c.Runtimes) == 0 {
		c.Runtimes = append(slices.Sorted(maps.Keys(c.Interpreters)), "native")
	}
	return c
}

func (c Config) validate() error {
	for _, runtime := range c.Runtimes {
		name := placement.NormalizeRuntime(runtime)
		if _, ok := c.Interpreters[name]; !ok && name != "native" {
			return fmt.Errorf("worker %s: runtime %q has no interpreter", c.Name, runtime)
		}
	}
	if !slices.Contains([]string{"local", "remote", "container"}, c.Type) {
		return fmt.Errorf("worker %s: type %q is unknown: use local, remote or container", c.Name, c.Type)
	}
	if c.MaxConcurrent < 1 || c.MaxConcurrent > 10_000 {
		return fmt.Errorf("worker %s: %d concurrent executions are not between 1 and 10000", c.Name, c.MaxConcurrent)
	}
	return nil
}

// interpreters merges a shell, the found and the given interpreters; given ones win.
func interpreters(found, given map[string][]string) map[string][]string {
	all := map[string][]string{shell: {"/bin/sh"}}
	if bash, err := exec.LookPath("bash"); err == nil {
		all[shell] = []string{bash}
	}
	for _, commands := range []map[string][]string{found, given} {
		for name, command := range commands {
			if len(command) > 0 {
				all[placement.NormalizeRuntime(name)] = command
			}
		}
	}
	return all
}

// capabilities are what the worker announces about itself, with the found interpreters.
func (c Config) capabilities(found []interpreter) map[string]any {
	all := announcedOf(found)
	maps.Copy(all, c.Capabilities)
	labels, taints := c.Labels, c.Taints
	if labels == nil {
		labels = map[string]string{}
	}
	if taints == nil {
		taints = []Taint{}
	}
	maps.Copy(all, map[string]any{
		"runtimes": c.Runtimes, "max_concurrent_executions": c.MaxConcurrent, "worker_version": c.Version,
		"labels": labels, "taints": taints,
		"agent_mode": false, "agent_binary_name": "attune-executor", "agent_binary_version": c.Version,
		"attempt_fence": true, "batch": !c.SingleMessages,
	})
	delete(all, "health") // this process has no health yet
	if c.HealthURL != nil {
		if url := c.HealthURL(); url != "" {
			all["health_url"] = url
		}
	}
	return all
}

// announcedOf are the capabilities that follow from the interpreters.
func announcedOf(found []interpreter) map[string]any {
	versions := make(map[string][]string, len(found))
	for _, one := range found {
		if !slices.Contains(versions[one.Name], one.Version) {
			versions[one.Name] = append(versions[one.Name], one.Version)
		}
	}
	return map[string]any{"runtime_versions": versions, "detected_interpreters": append([]interpreter{}, found...)}
}

// announced are the found capabilities, without the ones that the operator has set.
func (c Config) announced(found []interpreter) map[string]any {
	all := announcedOf(found)
	for key := range c.Capabilities {
		delete(all, key)
	}
	return all
}

func orText(target *string, fallback string) {
	if strings.TrimSpace(*target) == "" {
		*target = fallback
	}
}

func orNumber[N ~int | ~int64](target *N, fallback N) {
	if *target <= 0 {
		*target = fallback
	}
}
