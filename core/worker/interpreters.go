package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/worker/output"
	"github.com/attune-go/attune/core/worker/process"
)

const (
	// probeTimeoutDefault bounds the concurrent version queries of the interpreters, and so the delay of
	// the registration.
	probeTimeoutDefault = 3 * time.Second
	// probeOutput bounds the output of one query.
	probeOutput = 4 << 10
)

// interpreter runs the entrypoints of a runtime, as it is announced.
type interpreter struct {
	Name    string `json:"name"` // of the runtime, normalized
	Path    string `json:"path"`
	Version string `json:"version"`
}

// dialect is how the interpreters of a runtime are started and queried.
type dialect struct {
	programs []string
	query    string         // the argument that prints the version
	answer   *regexp.Regexp // the version is its first group
}

// release is a version of at least two parts, with its pre-release suffix: placement treats
// 3.13.0rc1 as older than 3.13.0.
const release = `(\d+(?:\.\d+)+(?:-?(?:(?:a|b|rc)\.?\d+|(?:alpha|beta|preview|pre|dev|ea|nightly|canary)[0-9a-z._]*)\b)?)`

var (
	anyVersion  = regexp.MustCompile(release)
	javaVersion = regexp.MustCompile(`version "(\d+(?:\.\d+)*(?:-ea)?)`) // may be 21, without a dot
)

var dialects = map[string]dialect{
	"go":     {programs: []string{"go"}, query: "version", answer: anyVersion},
	"java":   {programs: []string{"java"}, query: "-version", answer: javaVersion}, // Java 8 accepts no other spelling
	"node":   {programs: []string{"node", "nodejs"}, query: "--version", answer: anyVersion},
	"perl":   {programs: []string{"perl"}, query: "--version", answer: anyVersion},
	"python": {programs: []string{"python"}, query: "--version", answer: anyVersion},
	"r":      {programs: []string{"Rscript"}, query: "--version", answer: anyVersion},
	"ruby":   {programs: []string{"ruby"}, query: "--version", answer: anyVersion},
	"shell":  {programs: []string{"bash"}, query: "--version", answer: anyVersion},
}

// prober finds the versions of the interpreters that the worker would start. It omits an
// interpreter that is missing or does not answer: the worker announces no version of that runtime.
type prober struct {
	env    []string      // the environment of the interpreters when they run actions
	user   *process.User // the user of the interpreters
	find   func(program string) (string, error)
	logger *slog.Logger
	wg     *sync.WaitGroup // of interpreters that are being stopped

	timeout time.Duration
}

// detect queries the interpreters of the configured runtimes, unless the operator announces both
// fields.
func (c Config) detect(ctx context.Context, logger *slog.Logger, wg *sync.WaitGroup) []interpreter {
	_, versions := c.Capabilities["runtime_versions"]
	_, interpreters := c.Capabilities["detected_interpreters"]
	if versions && interpreters {
		return nil
	}
	return c.prober(logger, wg).all(ctx, placement.NormalizeRuntimes(c.Runtimes), c.Interpreters)
}

func (c Config) prober(logger *slog.Logger, wg *sync.WaitGroup) prober {
	return prober{
		env: c.baseEnv(), user: c.user, find: exec.LookPath, logger: logger, wg: wg, timeout: c.probeTimeout,
	}
}

// all queries every interpreter at the same time and returns the results when the last has answered
// or the timeout has passed.
func (p prober) all(ctx context.Context, runtimes []string, commands map[string][]string) []interpreter {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	answers := make(chan interpreter, len(runtimes)) // the reader may have stopped
	asked := 0
	for _, runtime := range runtimes {
		command := commands[runtime]
		if len(command) == 0 {
			continue // native: the entrypoint is the program
		}
		asked++
		p.wg.Go(func() {
			one, err := p.probe(ctx, runtime, command)
			if err != nil {
				p.logger.DebugContext(ctx, "No version of a runtime is announced", "runtime", runtime, "error", err)
			}
			answers <- one
		})
	}
	return collect(ctx, answers, asked)
}

// collect returns the results by name; it stops waiting when the context ends.
func collect(ctx context.Context, answers <-chan interpreter, asked int) []interpreter {
	var found []interpreter
	for ; asked > 0 && ctx.Err() == nil; asked-- {
		select {
		case one := <-answers:
			if one.Version != "" {
				found = append(found, one)
			}
		case <-ctx.Done():
		}
	}
	slices.SortFunc(found, func(a, b interpreter) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// probe queries one interpreter, and stops its process group at the timeout.
func (p prober) probe(ctx context.Context, runtime string, command []string) (interpreter, error) {
	ask, path, err := p.question(runtime, command)
	if err != nil {
		return interpreter{}, err
	}
	stdout, stderr := output.NewCapture(probeOutput), output.NewCapture(probeOutput)
	outcome, err := process.Run(ctx, process.Command{
		Args: ask, Env: p.env, Stdout: stdout, Stderr: stderr,
		Dir:   "/", // version managers read files of the folder and of its parents
		Grace: time.Nanosecond,
		User:  p.user,
	})
	switch {
	case err != nil:
		return interpreter{}, err
	case outcome.Interrupted != nil:
		return interpreter{}, fmt.Errorf("%s did not answer: %w", path, outcome.Interrupted)
	case outcome.ExitCode != 0:
		return interpreter{}, fmt.Errorf("%s ended with %d", path, outcome.ExitCode)
	}
	for _, text := range [][]byte{stdout.Bytes(), stderr.Bytes()} {
		if match := dialects[runtime].answer.FindSubmatch(text); match != nil {
			return interpreter{Name: runtime, Path: path, Version: string(match[1])}, nil
		}
	}
	return interpreter{}, fmt.Errorf("%s printed no version", path)
}

// question returns the version query of a command's interpreter, and its path. Only known programs
// are started, directly or by env: other programs might take the query for work.
func (p prober) question(runtime string, command []string) (ask []string, path string, err error) {
	d, ok := dialects[runtime]
	if !ok {
		return nil, "", fmt.Errorf("runtime %s has no known interpreters", runtime)
	}
	program := command[0]
	if filepath.Base(program) == "env" && len(command) > 1 {
		ask, program = []string{program}, command[1]
	}
	name := strings.TrimRight(filepath.Base(program), "0123456789.-") // python3.12
	if !slices.Contains(d.programs, name) {
		return nil, "", fmt.Errorf("%s is no known interpreter of %s", program, runtime)
	}
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		return nil, "", fmt.Errorf("%s is another program in every pack", program)
	}
	if path, err = p.find(program); err != nil {
		return nil, "", err
	}
	if ask == nil {
		program = path
	}
	return append(ask, program, d.query), path, nil
}
