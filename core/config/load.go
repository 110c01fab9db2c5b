package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// PathVariable is the environment variable that names the configuration file.
const PathVariable = "ATTUNE_CONFIG"

// envPrefix is the prefix of variables that override keys.
const envPrefix = "ATTUNE__"

// Load reads the configuration from the file, the environment (in the form of os.Environ) and the defaults. An empty
// path means that of ATTUNE_CONFIG in environ; without either there is no file.
//
// The error has a line for every mistake, with its place and the remedy: first of all keys, then of all values. Values
// that contradict each other are checked only if each is right.
func Load(path string, environ []string) (*Config, error) {
	if path == "" {
		path = lookup(environ, PathVariable)
	}
	l := &loader{
		cfg:    Default(),
		values: document{},
		given:  map[string]place{},
		folder: filepath.Dir(path),
	}
	l.cfg.Path = path
	overrides := overridesIn(environ)
	if path != "" {
		if err := l.readFile(path); err != nil {
			return nil, err
		}
	}
	l.readEnvironment(overrides)
	l.applyWorkerVariables(environ)
	l.applyTelemetryVariable(environ)
	l.warnOfVariables(environ)
	l.assign()
	for _, step := range []func() error{l.assignAliases, l.assignSecretFiles, l.finish} {
		if len(l.mistakes) == 0 { // these steps compare values with each other
			l.mistaken(step())
		}
	}
	if len(l.mistakes) > 0 {
		return nil, errors.Join(l.mistakes...)
	}
	return l.cfg, nil
}

// place is the origin of a given key; the environment ranks above the file.
type place struct {
	source string
	rank   int
}

const (
	rankFile = 1 + iota
	rankEnvironment
)

// document holds the given values as the file nests them.
type document map[string]any

// get returns the value of a key such as "database.url"; nil if it is not given.
func (d document) get(key string) any {
	section, rest, nested := strings.Cut(key, ".")
	if value, ok := d[key]; ok || !nested {
		return value
	}
	below, _ := d[section].(document)
	return below.get(rest)
}

// set stores a value, and replaces whatever is in the place of a section above it.
func (d document) set(key string, value any) {
	section, rest, nested := strings.Cut(key, ".")
	if !nested {
		d[key] = value
		return
	}
	below, ok := d[section].(document)
	if !ok {
		below = document{}
		d[section] = below
	}
	below.set(rest, value)
}

type loader struct {
	cfg     *Config
	values  document
	given   map[string]place
	known   map[string]setting
	foreign []string
	folder  string // paths of *_file keys are relative to the folder of the file

	mistakes []error
}

func (l *loader) mistaken(err error) {
	if err != nil {
		l.mistakes = append(l.mistakes, err)
	}
}

// readFile merges the file and checks its keys in their order.
func (l *loader) readFile(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the configuration file %s does not exist: correct --config or %s", path, PathVariable)
	}
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	var parsed yaml.Node
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		line, text := yamldoc.Syntax(content, err)
		return fmt.Errorf("%s:%d: this is not YAML: %s", path, max(line, 1), text)
	}
	if len(parsed.Content) == 0 {
		return nil
	}
	root := parsed.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: the configuration must be a mapping of sections", path, root.Line)
	}
	nameKeys(root)
	if err := namedAlerts(path, root); err != nil {
		return err
	}
	if err := root.Decode(&l.values); err != nil {
		return fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	rules, _ := l.values.get("alerts").(document)
	l.addRules(sortedKeys(rules))
	l.walk(path, "", root)
	return nil
}

// nameKeys makes the keys of all mappings strings: a rule or a label may be named 5.
func nameKeys(node *yaml.Node) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode && child.Tag != "!!merge" {
			child.Tag = "!!str"
		}
		nameKeys(child)
	}
}

func (l *loader) walk(path, prefix string, node *yaml.Node) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if name.Value == "<<" { // the keys of a merge key count as given here
			l.walk(path, prefix, value)
			continue
		}
		key := prefix + name.Value
		at := place{source: fmt.Sprintf("%s:%d", path, name.Line), rank: rankFile}
		section, err := l.accept(key, at)
		switch {
		case err != nil:
			l.mistaken(err)
		case !section || value.Tag == "!!null":
		case value.Kind != yaml.MappingNode && value.Kind != yaml.AliasNode:
			l.mistaken(fmt.Errorf("%s: %s is a section: write its keys below it", at.source, key))
		default:
			l.walk(path, key+".", value)
		}
	}
}

// accept records a key of ours, ignores a key of others, and refuses an unknown one. It reports whether the key is a
// section.
func (l *loader) accept(key string, at place) (section bool, err error) {
	_, isAlias := aliases[key]
	_, isFile := fileVariants[key]
	if _, ok := l.known[key]; ok || isAlias || isFile || l.belowTree(key, at) {
		l.given[key] = at
		return false, nil
	}
	if reason, ok := inertReason(key); ok {
		l.cfg.Warnings = append(l.cfg.Warnings, fmt.Sprintf("%s: %s has no effect: %s", at.source, key, reason))
		return false, nil
	}
	for known := range l.known {
		if strings.HasPrefix(known, key+".") {
			return true, nil
		}
	}
	return false, l.refuseOrIgnore(key, at)
}

// refuseOrIgnore ignores the sections and keys of others, unless they look like a misspelt key of ours.
func (l *loader) refuseOrIgnore(key string, at place) error {
	section, rest, nested := strings.Cut(key, ".")
	siblings := l.siblings(key)
	if !nested || slices.Contains(shared, section) {
		misspelt := func(sibling string) bool { return phrase.Distance(key, sibling) <= 2 }
		if !slices.ContainsFunc(siblings, misspelt) {
			name := section
			if nested {
				name += "." + firstWord(rest)
			}
			if !slices.Contains(l.foreign, name) {
				l.foreign = append(l.foreign, name)
			}
			return nil
		}
	} else if !slices.Contains(l.sections(), section) {
		return l.refuseOrIgnore(section, at) // an environment key below a foreign section
	}
	return fmt.Errorf("%s: %s is not a known key%s", at.source, key, l.suggestion(key, siblings))
}

// suggestion names the nearest sibling, or else the nearest of all keys.
func (l *loader) suggestion(key string, siblings []string) string {
	near := phrase.Nearest(key, siblings)
	if near == "" {
		_, last := splitLast(key)
		for _, known := range sortedKeys(l.known) {
			if _, name := splitLast(known); name == last {
				near = known
				break
			}
		}
	}
	if near == "" {
		near = phrase.Nearest(key, sortedKeys(l.known))
	}
	if near == "" {
		return "; `config explain` lists all keys"
	}
	return "; the nearest is " + near
}

// siblings lists the keys and sections below the parent of key.
func (l *loader) siblings(key string) []string {
	parent, _ := splitLast(key)
	seen := map[string]bool{}
	for _, known := range slices.Concat(sortedKeys(l.known), sortedKeys(fileVariants), sortedKeys(aliases)) {
		if rest, ok := strings.CutPrefix(known, parent); ok {
			seen[parent+firstWord(rest)] = true
		}
	}
	return sortedKeys(seen)
}

func (l *loader) sections() []string { return l.siblings("") }

// belowTree reports whether the key is in a map such as worker.labels, and records the map as given.
func (l *loader) belowTree(key string, at place) bool {
	for parent, _ := splitLast(key); parent != ""; parent, _ = splitLast(strings.TrimSuffix(parent, ".")) {
		if s, ok := l.known[strings.TrimSuffix(parent, ".")]; ok && s.isTree() {
			l.given[s.key] = at
			return true
		}
	}
	return false
}

// addRules creates the named alert rules and indexes all keys.
func (l *loader) addRules(names []string) {
	for _, name := range names {
		if l.cfg.Alerts[name] == nil {
			l.cfg.Alerts[name] = &AlertRule{Enabled: true, Severity: "warning"}
		}
	}
	l.known = map[string]setting{}
	for _, s := range l.cfg.settings() {
		l.known[s.key] = s
	}
}

type override struct{ variable, key, value string }

func overridesIn(environ []string) []override {
	var list []override
	for _, line := range environ {
		variable, value, ok := strings.Cut(line, "=")
		if !ok || len(variable) <= len(envPrefix) || !strings.EqualFold(variable[:len(envPrefix)], envPrefix) {
			continue
		}
		key := strings.ToLower(strings.ReplaceAll(variable[len(envPrefix):], "__", "."))
		list = append(list, override{variable: variable, key: key, value: value})
	}
	slices.SortFunc(list, func(a, b override) int { return strings.Compare(a.key, b.key) })
	return list
}

func (l *loader) readEnvironment(overrides []override) {
	var rules []string
	for _, o := range overrides {
		if rest, ok := strings.CutPrefix(o.key, "alerts."); ok && strings.Contains(rest, ".") {
			rules = append(rules, firstWord(rest))
		}
	}
	l.addRules(rules)
	for _, o := range overrides {
		at := place{source: "environment " + o.variable, rank: rankEnvironment}
		section, err := l.accept(o.key, at)
		switch {
		case err != nil:
			l.mistaken(err)
		case section:
			l.mistaken(fmt.Errorf("%s: %s is a section: name one of its keys", at.source, o.key))
		default:
			l.values.set(o.key, o.value)
		}
	}
}

// elsewhere are variables that look like keys: existing workers read the first two, actions get the others.
var elsewhere = []string{
	"ATTUNE_WORKER_NAME", "ATTUNE_WORKER_RUNTIMES", "ATTUNE_ARTIFACTS_DIR",
	"ATTUNE_RUNTIME_ENVS_DIR", PathVariable,
}

// warnOfVariables warns of variables that override no key because an underscore is missing.
func (l *loader) warnOfVariables(environ []string) {
	flat := map[string]string{}
	for _, known := range slices.Concat(sortedKeys(l.known), sortedKeys(fileVariants)) {
		flat[strings.ReplaceAll(known, ".", "_")] = known
	}
	for _, line := range environ {
		variable, _, _ := strings.Cut(line, "=")
		rest, ok := strings.CutPrefix(strings.ToUpper(variable), "ATTUNE_")
		if !ok || strings.HasPrefix(rest, "_") || slices.Contains(elsewhere, variable) {
			continue
		}
		rest = strings.ToLower(rest)
		section, below, nested := strings.Cut(rest, "__")
		key, known := flat[strings.ReplaceAll(rest, "__", "_")]
		switch {
		case known:
		case nested && slices.Contains(l.sections(), section):
			key = section + "." + strings.ReplaceAll(below, "__", ".")
		default:
			continue
		}
		l.cfg.Warnings = append(l.cfg.Warnings,
			fmt.Sprintf("environment %s is ignored: write %s%s, with two underscores", variable,
				envPrefix, strings.ToUpper(strings.ReplaceAll(key, ".", "__"))))
	}
}

// applyWorkerVariables applies the two variables that published workers read. A configured name overrides its variable;
// the variable for runtimes overrides the file.
func (l *loader) applyWorkerVariables(environ []string) {
	if name := lookup(environ, "ATTUNE_WORKER_NAME"); name != "" && l.given["worker.name"].rank == 0 {
		l.set("worker.name", name, "environment ATTUNE_WORKER_NAME")
	}
	if runtimes := lookup(environ, "ATTUNE_WORKER_RUNTIMES"); runtimes != "" &&
		l.given["worker.runtimes"].rank < rankEnvironment {
		l.set("worker.runtimes", runtimes, "environment ATTUNE_WORKER_RUNTIMES")
	}
}

// applyTelemetryVariable applies the variable that names the collector to all programs of a host.
func (l *loader) applyTelemetryVariable(environ []string) {
	const name = "OTEL_EXPORTER_OTLP_ENDPOINT"
	if endpoint := lookup(environ, name); endpoint != "" && l.given["telemetry.otlp_endpoint"].rank == 0 {
		l.set("telemetry.otlp_endpoint", endpoint, "environment "+name)
	}
}

func (l *loader) set(key, value, source string) {
	l.given[key] = place{source: source, rank: rankEnvironment}
	l.values.set(key, value)
}

func lookup(environ []string, name string) string {
	for _, line := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

func splitLast(key string) (parent, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:i+1], key[i+1:]
}

func firstWord(key string) string {
	word, _, _ := strings.Cut(key, ".")
	return word
}
