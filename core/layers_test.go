package core_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/attune-go/attune/"

// layers is the order of the packages below core/. A package may import packages of lower layers, and of its own layer
// only those in siblings.
var layers = map[string]int{
	"lifecycle": 0, "jsonvalue": 0, "supervise": 0, "telemetry": 0, "crashpoint": 0, "phrase": 0,

	"message": 10, "expr": 10, "schema": 10, "secret": 10, "policy": 10, "placement": 10,
	"workflow": 10, "pack": 10, "config": 10, "rule": 10, "yamldoc": 10,

	"store": 20, "broker": 20,
	"batch": 25, "tracing": 25,
	"outbox": 30,

	"admission": 40, "scheduler": 40, "inquiry": 40, "advancement": 40, "eventing": 40,
	"retention": 40, "recovery": 40, "deadletter": 40, "liveness": 40, "cancellation": 40,

	"monitor": 50, "explain": 50, "alerting": 50, "triage": 50, "catalog": 50, "submit": 50, "doctor": 50,
	"handback": 50, "roles": 50, "act": 50,
	"engine": 55, "api": 55, "worker": 55,
}

// siblings are the imports allowed within one layer.
var siblings = map[string][]string{
	"telemetry": {"phrase"},
	"config":    {"yamldoc"},
	"message":   {"lifecycle"}, "workflow": {"yamldoc", "expr", "schema"},
	"pack":         {"yamldoc", "policy", "placement", "expr", "schema", "workflow", "rule"},
	"rule":         {"expr", "secret"},
	"secret":       {"expr"},
	"schema":       {"expr"},
	"policy":       {"schema"},
	"scheduler":    {"admission", "inquiry"},
	"advancement":  {"scheduler", "inquiry", "admission"}, // a task that asks a person opens its question with its row
	"cancellation": {"scheduler", "admission"},
	"recovery":     {"scheduler", "admission"},
	"deadletter":   {"scheduler", "admission"},
	"liveness":     {"scheduler", "admission"},
	"explain":      {"monitor"},
	"triage":       {"monitor"}, // what an operator names is found as lists find it
	"alerting":     {"monitor", "explain"},
	"act":          {"monitor", "explain", "triage"},            // it words what they read and do, for every door
	"doctor":       {"monitor", "explain", "alerting", "roles"}, // it judges what they read
	"engine":       {"api"},                                     // it starts and stops its own HTTP listener
}

// whyLayer is the reason printed when a package reaches up or sideways.
var whyLayer = map[int]string{
	0:  "the vocabulary and the life cycle depend on nothing of ours, so everything can use them",
	10: "rules are tested without I/O: no store, no broker, time is passed in",
	20: "the wires decide nothing; they know neither each other nor the steps",
	25: "every step handles an error of its batches alike",
	30: "the outbox serves every step and knows none",
	40: "a step hands on by message or through admission and scheduler, never by calling the next step",
	50: "what people ask for works without a running engine",
	55: "the running parts are assembled by programs, not by each other",
}

// dashboard lists the packages of core that tui may import.
var dashboard = []string{
	"monitor", "explain", "alerting", "inquiry", "phrase", "act", "triage", "lifecycle", "config", "yamldoc",
}

// edges are the third-party modules that only some folders may import.
var edges = []struct {
	prefix  string
	allowed []string
	why     string
}{
	{
		"github.com/jackc/pgx/",
		[]string{
			"core/store", "migrations", "core/outbox", "core/doctor", "core/roles", "lab",
		},
		"SQL goes through the store, which classifies errors and repeats transactions (for no row, compare with sql.ErrNoRows)",
	},
	{
		"github.com/rabbitmq/amqp091-go",
		[]string{"core/broker", "lab"},
		"messages go through the broker package, which confirms, reconnects and has deadlines",
	},
	{
		"github.com/michaelklishin/rabbit-hole",
		[]string{"core/broker"},
		"the management API is reached through broker.Management, which knows its traps",
	},
	{
		"github.com/charmbracelet/",
		[]string{"tui", "cmd/attune-tui", "docs/pictures", "core/phrase"},
		"the terminal is the dashboard's business; core/phrase measures cells for it and for commands",
	},
	{
		"github.com/golang-jwt/jwt",
		[]string{"core/secret"},
		"one package decides which tokens are accepted",
	},
	{
		"github.com/spf13/cobra",
		[]string{"cmd", "lab/manual"},
		"flags and commands are the programs' business",
	},
	{
		"github.com/pressly/goose",
		[]string{"migrations"},
		"the schema is changed by the migrations package only",
	},
	{
		"github.com/stretchr/testify",
		[]string{"lab/testkit"},
		"assertions belong to tests",
	},
}

// source is one Go file and its imports.
type source struct {
	file    string // relative to the module
	folder  string // relative to the module
	test    bool
	imports []string
}

func TestLayers(t *testing.T) {
	t.Parallel()

	files := sources(t)
	require.NotEmpty(t, files)
	var broken []string
	for _, file := range files {
		if problem := unknown(file.folder); problem != "" {
			broken = append(broken, file.folder+": "+problem)
			continue // its place has to be decided before its imports can be assessed
		}
		for _, imported := range file.imports {
			if problem := assess(file, imported); problem != "" {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", file.file, imported, problem))
			}
		}
	}
	slices.Sort(broken)
	if broken = slices.Compact(broken); len(broken) > 0 {
		require.Fail(t, "imports against the layers", strings.Join(broken, "\n"))
	}
}

// TestLayersRefuse checks that the table refuses forbidden imports.
func TestLayersRefuse(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		folder, imports string
		test, refused   bool
	}{
		{"core/policy", module + "core/lifecycle", false, false},
		{"core/policy", module + "core/store", false, true},
		{"core/store", module + "core/broker", false, true},
		{"core/scheduler", module + "core/admission", false, false},
		{"core/recovery", module + "core/advancement", false, true},
		{"core/monitor", module + "core/triage", false, true},
		{"core/engine", module + "lab/testkit", false, true},
		{"core/engine", module + "lab/testkit", true, false},
		{"core/store", module + "lab/devstack", false, true},
		{"cmd/attune-executor", module + "lab/devstack", false, true},
		{"cmd/attune-tui", module + "lab/devstack", false, true},
		{"tui/app", module + "lab/devstack", false, true},
		{"cmd/attune-lab", module + "lab/devstack", false, false},
		{"cmd/attune-lab", module + "lab/testkit", false, true},
		{"lab/demo", module + "lab/devstack", false, false},
		{"lab/demo", module + "core/store", false, false},
		{"lab/demo", module + "lab/testkit", false, true},
		{"core/store/internal/sources", module + "core/outbox", false, true},
		{"core/scheduler", "github.com/jackc/pgx/v5", false, true},
		{"core/scheduler", "github.com/jackc/pgx/v5", true, false},
		{"tui/screen/queues", module + "core/monitor", false, false},
		{"tui/screen/queues", module + "core/store", false, true},
		{"tui/app", module + "tui/theme", false, false},
		{"core/monitor", module + "tui/theme", false, true},
		{"core/engine", module + "cmd/attune-executor", false, true},
		{"core/store", module + "migrations", false, false},
		{"core/policy", module + "migrations", false, true},
		{"migrations", module + "core/store", false, true},
		{"cmd/attune-executor", module + "core/engine", false, false},
		{"cmd/attune-tui", module + "cmd/attune-tui/internal/start", false, false},
		{"cmd/attune-tui", module + "cmd/attune-executor", false, true},
		{"cmd/attune-executor", "github.com/jackc/pgx/v5", false, true},
		{"lab/bench/datapath", module + "core/scheduler", false, false},
		{"lab/bench/datapath", module + "tui/theme", false, true},
		{"docs/pictures/draw", module + "tui/theme", false, false},
	} {
		problem := assess(source{folder: c.folder, test: c.test}, c.imports)
		require.Equal(t, c.refused, problem != "", "%s importing %s: %s", c.folder, c.imports, problem)
	}
	require.Contains(t, unknown("core/newcomer"), "add it to the table")
	require.Empty(t, unknown("core/store/internal/sources"))
}

// assess says why the file may not import the package; empty means it may.
func assess(file source, imported string) string {
	if !strings.HasPrefix(imported, module) {
		return judgeEdge(file, imported)
	}
	target := strings.TrimPrefix(imported, module)
	top, _, _ := strings.Cut(target, "/")
	switch {
	case file.test:
		return "" // a test may stand on anything
	case within(target, testkit):
		if within(file.folder, testkit) {
			return ""
		}
		return "it is for tests only: it fails tests and starts servers"
	case top == "lab":
		if within(file.folder, "lab") || program(file.folder) == "cmd/attune-lab" {
			return ""
		}
		return "no installation needs the laboratory"
	case top == "cmd":
		if program(file.folder) == program(target) {
			return ""
		}
		return "a program is never a library"
	case top == "tui":
		return judgeTUI(file.folder)
	case top == "migrations":
		return judgeMigrations(file.folder)
	case top == "core":
		return judgeCore(file.folder, corePackage(target))
	}
	return "unknown top-level folder " + top
}

// program is the folder of the command that a folder belongs to.
func program(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// testkit is the folder of the packages that only tests import.
const testkit = "lab/testkit"

func judgeEdge(file source, imported string) string {
	if file.test {
		return ""
	}
	for _, edge := range edges {
		if !strings.HasPrefix(imported, edge.prefix) {
			continue
		}
		for _, folder := range edge.allowed {
			if within(file.folder, folder) {
				return ""
			}
		}
		return fmt.Sprintf("only %s may: %s", strings.Join(edge.allowed, ", "), edge.why)
	}
	return ""
}

func judgeTUI(folder string) string {
	if within(folder, "tui") || within(folder, "cmd/attune-tui") || within(folder, "docs/pictures") ||
		within(folder, "lab/manual") {
		return ""
	}
	return "nothing below the dashboard may know it"
}

func judgeMigrations(folder string) string {
	if within(folder, "cmd") || within(folder, "lab") || within(folder, "migrations") {
		return ""
	}
	if pkg := corePackage(folder); pkg != "" && layers[pkg] >= layers["store"] {
		return ""
	}
	return "the schema lies beside the store; rules know nothing of it"
}

func judgeCore(folder, target string) string {
	switch {
	case within(folder, "tui"):
		if slices.Contains(dashboard, target) {
			return ""
		}
		return "the dashboard reads through monitor, explain and alerting and acts through triage (allowed: " +
			strings.Join(dashboard, ", ") + ")"
	case within(folder, "cmd"), within(folder, "lab"):
		return ""
	case within(folder, "migrations"):
		return "the schema depends on nothing of ours"
	}
	own := corePackage(folder)
	if own == target || layers[target] < layers[own] || slices.Contains(siblings[own], target) {
		return ""
	}
	return fmt.Sprintf("core/%s is in layer %d and core/%s in layer %d: %s",
		own, layers[own], target, layers[target], whyLayer[layers[own]])
}

// unknown reports a package that the table does not place.
func unknown(folder string) string {
	pkg := corePackage(folder)
	if _, placed := layers[pkg]; pkg == "" || placed {
		return ""
	}
	return "not in the table of layers: add it to the table in core/layers_test.go, and to the map in core/doc.go"
}

// corePackage is the package below core/ that a folder belongs to; sub-packages
// belong to the package above them.
func corePackage(folder string) string {
	rest, ok := strings.CutPrefix(folder, "core/")
	if !ok {
		return ""
	}
	pkg, _, _ := strings.Cut(rest, "/")
	return pkg
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// sources parses the import clauses of every Go file of the product, the laboratory and the pictures.
func sources(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	var found []source
	for _, top := range []string{"core", "cmd", "tui", "migrations", "lab", "docs"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
				return nil
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go"):
				return nil
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			file := source{
				file: filepath.ToSlash(relative), folder: filepath.ToSlash(filepath.Dir(relative)),
				test: strings.HasSuffix(path, "_test.go"),
			}
			for _, spec := range parsed.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				file.imports = append(file.imports, name)
			}
			found = append(found, file)
			return nil
		})
		require.NoError(t, err)
	}
	return found
}
