package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/schema"
)

// oneArg asks for exactly one argument and says what it is.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s needs %s", cmd.Name(), what)
		case 1:
			return nil
		}
		return fmt.Errorf("%s takes one argument, %s, not %d", cmd.Name(), what, len(args))
	}
}

// kind is a kind of thing that is known by its id.
type kind struct {
	what string // with its article, for the error about an id
	hint string // where there is none with an id: which command shows them
}

var (
	anExecution   = kind{what: "an execution", hint: "`attune-executor execution list` shows the newest"}
	aWorkflow     = kind{what: "a workflow, which is that of its execution", hint: "`attune-executor workflow list` shows the newest"}
	aDeadLetter   = kind{what: "a dead letter", hint: "`attune-executor dlq list` shows the newest"}
	anInquiry     = kind{what: "an inquiry", hint: "`attune-executor inquiry list --all` shows those that there are"}
	aQueue        = kind{what: "a queue", hint: "`attune-executor queue list` shows them"}
	anEvent       = kind{what: "an event", hint: "`attune-executor event list` shows the newest"}
	anEnforcement = kind{what: "an enforcement", hint: "`attune-executor enforcement list` shows the newest"}
)

// name is the kind without its article.
func (k kind) name() string {
	name, _, _ := strings.Cut(k.what, ",")
	return strings.TrimPrefix(strings.TrimPrefix(name, "an "), "a ")
}

// id reads one id.
func (k kind) id(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not the id of %s", text, k.what)
	}
	return id, nil
}

// ids reads several.
func (k kind) ids(args []string) (ids []int64, err error) {
	ids = make([]int64, len(args))
	for i, text := range args {
		if ids[i], err = k.id(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// missing says that there is none with this id.
func (k kind) missing(id int64) error {
	return failedErrorf("there is no %s %d: %s", k.name(), id, k.hint)
}

// pageFlags adds the flags of a list that goes on below an id.
func pageFlags(flags *pflag.FlagSet, limit *int, cursor *int64) {
	flags.IntVar(limit, "limit", 20, "how many to list")
	flags.Int64Var(cursor, "cursor", 0, "go on below this id")
}

// checkPage checks the flags of a list before a server is asked.
func checkPage(limit int, filters ...interface{ Check() error }) error {
	if limit < 1 {
		return usageErrorf("--limit must be at least 1")
	}
	for _, filter := range filters {
		if err := filter.Check(); err != nil {
			return usageErrorf("%w", err)
		}
	}
	return nil
}

// words completes a flag that takes one of a few words.
func words(cmd *cobra.Command, flag string, list ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

// ageValue is a flag that takes a duration such as 90s or 12h, or days as in 7d.
type ageValue time.Duration

// String writes the duration, empty for none.
func (v *ageValue) String() string {
	if *v == 0 {
		return ""
	}
	return time.Duration(*v).String()
}

// Set reads the duration.
func (v *ageValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * 24 * float64(time.Hour))
	}
	if err != nil || d <= 0 {
		return errors.New("it is not a time such as 90s, 12h or 7d")
	}
	*v = ageValue(d)
	return nil
}

// Type names the kind of value in help texts.
func (v *ageValue) Type() string { return "duration" }

// some asks for the ids of one thing or several.
func some(k kind) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs the id of %s, or several", cmd.Name(), k.what)
		}
		return nil
	}
}

// idRange reads a range of ids, or one.
func idRange(text string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	from, err = strconv.ParseInt(first, 10, 64)
	to, lastErr := strconv.ParseInt(last, 10, 64)
	if err != nil || lastErr != nil || from < 1 || to < from {
		return 0, 0, usageErrorf("%q is no range of ids: write it as 1468..1767", text)
	}
	return from, to, nil
}

// readParams reads the parameter file, if there is one.
func readParams(options *runOptions, stdin io.Reader) (map[string]any, error) {
	for _, pair := range options.params {
		if key, _, ok := strings.Cut(pair, "="); !ok || strings.TrimSuffix(key, ":") == "" {
			return nil, usageErrorf("parameter %q has no key: write -p key=value", pair)
		}
	}
	params := map[string]any{}
	if options.paramsFile == "" {
		return params, nil
	}
	file, err := openParams(options.paramsFile, stdin)
	if err != nil {
		return nil, usageErrorf("read the parameters: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err := readBounded(options.paramsFile, file)
	if err != nil {
		return nil, err
	}
	err = yaml.NewDecoder(bytes.NewReader(raw)).Decode(&params) // YAML includes JSON
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, usageErrorf("%s is not a mapping of parameters in YAML or JSON: %w", options.paramsFile, err)
	}
	if params == nil {
		params = map[string]any{}
	}
	return params, nil
}

// readBounded reads a file that is no larger than a value may be.
func readBounded(name string, file io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(file, bounds.Bytes+1))
	switch {
	case err != nil:
		return nil, usageErrorf("read %s: %w", name, err)
	case len(raw) > bounds.Bytes:
		return nil, usageErrorf("%s is larger than %d bytes (%d MiB), the most that is read: pass large data by reference", name, bounds.Bytes, bounds.Bytes>>20)
	}
	return raw, nil
}

// addPairs adds the -p parameters. What a value means depends on the type that
// the action's schema gives the parameter.
func addPairs(params map[string]any, pairs []string, paramSchema []byte) error {
	declared, err := schema.Parse(paramSchema)
	if err != nil {
		return failedErrorf("the action's schema of parameters: %w", err)
	}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
			parsed, ok := parseJSON(value)
			if !ok {
				return usageErrorf("parameter %s: %q is not JSON: write -p %s=value for a text", name, value, name)
			}
			params[name] = parsed
			continue
		}
		params[key] = value
		if declared.Type(key) != "string" {
			if parsed, ok := parseJSON(value); ok {
				params[key] = parsed
			}
		}
	}
	return nil
}

// parseJSON reads exactly one JSON value; numbers keep their digits.
func parseJSON(text string) (any, bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	_, err := decoder.Token()
	return value, errors.Is(err, io.EOF)
}

// openParams opens the parameter file.
func openParams(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}
