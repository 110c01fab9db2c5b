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
	// probeTimeout bounds how long interpreters are asked for their versions,
	// all at the same time, and so how much later a worker registers.
	probeTimeout = 3 * time.Second
	// probeOutput bounds what is read of an answer.
	probeOutput = 4 << 10
)

// interpreter is what runs the entrypoints of a runtime, as it is announced.
type interpreter struct {
	Name    string `json:"name"` // of the runtime, normalized
	Path    string `json:"path"`
	Version string `json:"version"`
}

// dialect is how the interpreters of a runtime are called and asked.
type dialect struct {
	programs []string
	ask      string
	answer   *regexp.Regexp // the version is its first group
}

// release is a version of at least two parts, with the name of its
// pre-release: placement treats 3.13.0rc1 as older than 3.13.0.
const release = `(\d+(?:\.\d+)+(?:-?(?:(?:a|b|rc)\.?\d+|(?:alpha|beta|preview|pre|dev|ea|nightly|canary)[0-9a-z._]*)\b)?)`

var (
	anyVersion  = regexp.MustCompile(release)
	javaVersion = regexp.MustCompile(`version "(\d+(?:\.\d+)*(?:-ea)?)`) // may be 21, without a dot
)

var dialects = map[string]dialect{
	"go":     {programs: []string{"go"}, ask: "version", answer: anyVersion},
	"java":   {programs: []string{"java"}, ask: "-version", answer: javaVersion}, // Java 8 knows no other spelling
	"node":   {programs: []string{"node", "nodejs"}, ask: "--version", answer: anyVersion},
	"perl":   {programs: []string{"perl"}, ask: "--version", answer: anyVersion},
	"python": {programs: []string{"python"}, ask: "--version", answer: anyVersion},
	"r":      {programs: []string{"Rscript"}, ask: "--version", answer: anyVersion},
	"ruby":   {programs: []string{"ruby"}, ask: "--version", answer: anyVersion},
	"shell":  {programs: []string{"bash"}, ask: "--version", answer: anyVersion},
}

// prober finds the versions of the interpreters that the worker would start.
// One that cannot be found or does not answer is left out: the worker announces
// no version of that runtime.
type prober struct {
	env    []string      // of the interpreters, as they have it when they run actions
	user   *process.User // of the interpreters
	find   func(program string) (string, error)
	logger *slog.Logger
	wg     *sync.WaitGroup // of interpreters that are being ended
}

// detect asks the interpreters of the configured runtimes. What the operator
// announces in both fields is not asked for.
func (c Config) detect(ctx context.Context, logger *slog.Logger, wg *sync.WaitGroup) []interpreter {
	_, versions := c.Capabilities["runtime_versions"]
	_, interpreters := c.Capabilities["detected_interpreters"]
	if versions && interpreters {
		return nil
	}
	p := prober{env: c.baseEnv(), user: c.user, find: exec.LookPath, logger: logger, wg: wg}
	return p.all(ctx, placement.NormalizeRuntimes(c.Runtimes), c.Interpreters)
}

// all asks every interpreter at the same time and returns what is known when
// the last has answered or the time is up.
func (p prober) all(ctx context.Context, runtimes []string, commands map[string][]string) []interpreter {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answers := make(chan interpreter, len(runtimes)) // nobody may listen any more
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

// collect returns what was found, by name, and no longer waits for the rest
// when the context ends.
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

// probe asks one interpreter, and ends it with its group when the time is up.
func (p prober) probe(ctx context.Context, runtime string, command []string) (interpreter, error) {
	ask, path, err := p.question(runtime, command)
	if err != nil {
		return interpreter{}, err
	}
	stdout, stderr := output.NewCapture(probeOutput), output.NewCapture(probeOutput)
	outcome, err := process.Run(ctx, process.Command{
		Args: ask, Env: p.env, Stdout: stdout, Stderr: stderr,
		Dir:   "/", // version managers read files of the folder and of those above
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
	return interpreter{}, fmt.Errorf("%s told no version", path)
}

// question is how to ask the interpreter of a command for its version, and
// where it is. Only programs known to answer are started, directly or by env:
// anything else might take the question for work.
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
	return append(ask, program, d.ask), path, nil
}
