package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// runtimeVersion is a row of runtime_version: its execution_config replaces the runtime's if the
// version is chosen.
type runtimeVersion struct {
	Version         string          `json:"version"`
	IsDefault       bool            `json:"is_default"`
	ExecutionConfig json.RawMessage `json:"execution_config"`
}

// command is the interpreter of the version. A version without one is never chosen.
func (v runtimeVersion) command() []string {
	var config executionConfig
	if json.Unmarshal(v.ExecutionConfig, &config) != nil || config.Interpreter.Binary == "" {
		return nil
	}
	return append([]string{config.Interpreter.Binary}, config.Interpreter.Args...)
}

// versionSet has the runtime versions known at the start, true if this worker has their interpreters.
type versionSet map[string]bool

func versionKey(runtime, version string) string {
	return placement.NormalizeRuntime(runtime) + " " + version
}

// has reports whether the worker can run the version. A row that is newer than the worker's start
// counts if its interpreter exists.
func (p versionSet) has(runtime string, v runtimeVersion) bool {
	command := v.command()
	if len(command) == 0 {
		return false
	}
	if here, known := p[versionKey(runtime, v.Version)]; known {
		return here
	}
	_, err := exec.LookPath(command[0])
	return err == nil
}

// version is the runtime version that an action runs with: the newest available one that meets its
// constraint; without a constraint the default, else the newest. Versions that this worker lacks
// are skipped. Without any the execution_config of the runtime applies.
func (r *runner) version(row started) (chosen runtimeVersion, ok bool, err error) {
	if len(row.RuntimeVersions) == 0 {
		return runtimeVersion{}, false, nil
	}
	var versions []runtimeVersion
	if err := json.Unmarshal(row.RuntimeVersions, &versions); err != nil {
		return runtimeVersion{}, false, fmt.Errorf("read the versions of the runtime %s: %w", text(row.Runtime), err)
	}
	constraint, err := placement.ParseConstraint(text(row.RuntimeVersionConstraint))
	if err != nil {
		return runtimeVersion{}, false, fmt.Errorf("read runtime_version_constraint of %s: %w", row.ActionRef, err)
	}
	var newest placement.Version
	for _, v := range versions {
		number, err := placement.ParseVersion(v.Version)
		if err != nil || !constraint.Admits(number) || !r.installed.has(text(row.Runtime), v) {
			continue
		}
		if constraint.Any() && v.IsDefault {
			return v, true, nil
		}
		if !ok || number.Compare(newest) > 0 {
			chosen, newest, ok = v, number, true
		}
	}
	return chosen, ok, nil
}

// versions finds the rows that this worker can run, all at the same time. It returns the
// interpreters to announce, and the presence of each row of an offered runtime.
func (c Config) versions(
	ctx context.Context, logger *slog.Logger, wg *sync.WaitGroup, rows []store.RuntimeVersionsRow,
) (found []interpreter, known versionSet) {
	p := c.prober(logger, wg)
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	offered := make(map[string]bool, len(c.Runtimes))
	for _, runtime := range placement.NormalizeRuntimes(c.Runtimes) {
		offered[runtime] = true
	}
	known = versionSet{}
	answers, asked := make(chan interpreter, len(rows)), 0
	for _, row := range rows {
		runtime := placement.NormalizeRuntime(row.Runtime)
		command := runtimeVersion{Version: row.Version, ExecutionConfig: row.ExecutionConfig}.command()
		if !offered[runtime] || len(command) == 0 || c.chosen[runtime] {
			continue
		}
		known[versionKey(runtime, row.Version)] = false
		asked++
		p.wg.Go(func() { answers <- p.probeVersion(ctx, runtime, row.Version, command) })
	}
	found = collect(ctx, answers, asked)
	for _, one := range found {
		known[versionKey(one.Name, one.Version)] = true
	}
	return found, known
}

// probeVersion returns no version if the interpreter is missing or reports another version. An
// interpreter that cannot be queried counts if it exists.
func (p prober) probeVersion(ctx context.Context, runtime, version string, command []string) interpreter {
	path, err := p.find(command[0])
	if err != nil {
		p.logger.DebugContext(ctx, "No interpreter of a runtime version is found",
			"runtime", runtime, "version", version, "error", err)
		return interpreter{}
	}
	if _, _, err := p.question(runtime, command); err != nil {
		return interpreter{Name: runtime, Path: path, Version: version}
	}
	one, err := p.probe(ctx, runtime, command)
	if err != nil || !strings.HasPrefix(one.Version+".", strings.TrimLeft(version, "vV")+".") {
		p.logger.DebugContext(ctx, "The interpreter of a runtime version is another version",
			"runtime", runtime, "version", version, "found", one.Version, "error", err)
		return interpreter{}
	}
	one.Version = version
	return one
}
