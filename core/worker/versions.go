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

// runtimeVersion is a row of runtime_version: an execution_config that replaces that
// of the runtime where the version is chosen.
type runtimeVersion struct {
	Version         string          `json:"version"`
	IsDefault       bool            `json:"is_default"`
	ExecutionConfig json.RawMessage `json:"execution_config"`
}

// command is the interpreter of the version; empty if the row names none, and then
// the version is never chosen.
func (v runtimeVersion) command() []string {
	var config executionConfig
	if json.Unmarshal(v.ExecutionConfig, &config) != nil || config.Interpreter.Binary == "" {
		return nil
	}
	return append([]string{config.Interpreter.Binary}, config.Interpreter.Args...)
}

// presence says of the runtime versions that were known at the start whether this
// worker has their interpreters.
type presence map[string]bool

func presenceKey(runtime, version string) string {
	return placement.NormalizeRuntime(runtime) + " " + version
}

// has reports whether the worker can run the version. A row that is newer than the
// worker's start counts if its interpreter is found.
func (p presence) has(runtime string, v runtimeVersion) bool {
	command := v.command()
	if len(command) == 0 {
		return false
	}
	if here, known := p[presenceKey(runtime, v.Version)]; known {
		return here
	}
	_, err := exec.LookPath(command[0])
	return err == nil
}

// version is the runtime version that an action runs with: the newest available one
// that meets its constraint; without a constraint the default, else the newest. A
// version that this worker does not have is passed over. Without any the
// execution_config of the runtime holds.
func (r *runner) version(row store.StartExecutionsRow) (chosen runtimeVersion, ok bool, err error) {
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
		if err != nil || !constraint.Admits(number) || !r.present.has(text(row.Runtime), v) {
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

// versions finds out which of the rows this worker can run, all at the same time. It
// returns what to announce, and what is known of each row of a runtime that the worker
// offers.
func (c Config) versions(
	ctx context.Context, logger *slog.Logger, wg *sync.WaitGroup, rows []store.RuntimeVersionsRow,
) (found []interpreter, known presence) {
	p := prober{env: c.baseEnv(), user: c.user, find: exec.LookPath, logger: logger, wg: wg}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	offered := make(map[string]bool, len(c.Runtimes))
	for _, runtime := range placement.NormalizeRuntimes(c.Runtimes) {
		offered[runtime] = true
	}
	known = presence{}
	answers, asked := make(chan interpreter, len(rows)), 0
	for _, row := range rows {
		runtime := placement.NormalizeRuntime(row.Runtime)
		command := runtimeVersion{Version: row.Version, ExecutionConfig: row.ExecutionConfig}.command()
		if !offered[runtime] || len(command) == 0 || c.chosen[runtime] {
			continue
		}
		known[presenceKey(runtime, row.Version)] = false
		asked++
		p.wg.Go(func() { answers <- p.probeVersion(ctx, runtime, row.Version, command) })
	}
	found = collect(ctx, answers, asked)
	for _, one := range found {
		known[presenceKey(one.Name, one.Version)] = true
	}
	return found, known
}

// probeVersion answers without a version if the interpreter is missing, or says that
// it is another version. An interpreter that cannot be asked counts if it is found.
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
