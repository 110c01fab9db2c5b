// Package setup makes the settings of a worker from the configuration and the programs of this machine.
package setup

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/core/worker/process"
)

// Config makes the settings of a worker. It fails only if the current folder is unknown.
func Config(cfg *config.Config, version string) (worker.Config, error) {
	c := cfg.Worker
	taints := make([]worker.Taint, len(c.Taints))
	for i, taint := range c.Taints {
		taints[i] = worker.Taint(taint)
	}
	packs, err := absolute(cmp.Or(c.PacksDir, cfg.PacksBaseDir))
	if err != nil {
		return worker.Config{}, err
	}
	envs, err := absolute(cfg.RuntimeEnvsDir)
	if err != nil {
		return worker.Config{}, err
	}
	return worker.Config{
		ActionTimeouts:    cfg.Executor.HonourActionTimeoutSeconds,
		Actions:           builtin.Actions(),
		APIURL:            apiURL(cfg.Server),
		ArtifactsDir:      cfg.ArtifactsDir,
		BatchCompletions:  c.BatchCompletions,
		Capabilities:      c.Capabilities,
		FoundInterpreters: foundInterpreters(c, packs),
		HeartbeatInterval: c.HeartbeatInterval,
		Host:              c.Host,
		Interpreters:      c.Interpreters,
		Labels:            c.Labels,
		Limits: process.Limits{
			CPU: c.MaxCPUTime, Memory: c.MaxMemoryBytes, OpenFiles: c.MaxOpenFiles, Processes: c.MaxProcesses,
		},
		MaxConcurrent:   c.MaxConcurrentTasks,
		MaxResultBytes:  c.MaxResultBytes,
		MaxStderrBytes:  c.MaxStderrBytes,
		MaxStdoutBytes:  c.MaxStdoutBytes,
		Name:            c.Name,
		PacksDir:        packs,
		Port:            c.Port,
		QueueTTL:        cfg.MessageQueue.RabbitMQ.WorkerQueueTTL,
		RunAs:           c.RunAs,
		RuntimeEnvsDir:  envs,
		Runtimes:        c.Runtimes,
		ShutdownTimeout: c.ShutdownTimeout,
		SingleMessages:  !c.BatchMessages,
		StaleAfter:      cfg.Executor.StaleAfter(),
		Taints:          taints,
		TaskTimeout:     c.TaskTimeout,
		Type:            c.Type,
		Version:         version,
	}, nil
}

// HealthURL is the address of the worker's health endpoint for others, with the host's name for a listener on all
// addresses.
func HealthURL(listens, host string) string {
	at, port, err := net.SplitHostPort(listens)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(at); ip == nil || ip.IsUnspecified() {
		if host == "" {
			host, _ = os.Hostname()
		}
		at = host
	}
	return "http://" + net.JoinHostPort(at, port) + "/healthz"
}

// absolute makes a path independent of the current folder, since processes run in others.
func absolute(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", dir, err)
	}
	return path, nil
}

// apiURL is the address of the API for actions.
func apiURL(server config.Server) string {
	if url := os.Getenv("ATTUNE_API_URL"); url != "" {
		return url
	}
	return "http://" + net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
}

// foundInterpreters are the interpreters of this machine, for a worker with packs whose configuration names none.
func foundInterpreters(c config.Worker, packs string) map[string][]string {
	if len(c.Interpreters) > 0 || len(c.Runtimes) > 0 || packs == "" {
		return nil
	}
	found := map[string][]string{}
	programs := map[string]string{"python": "python3", "node": "node", "ruby": "ruby", "perl": "perl"}
	for runtime, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			found[runtime] = []string{path}
		}
	}
	return found
}
