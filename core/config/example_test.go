package config_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
)

const exampleIntroduction = `# Every key of the configuration with its default. A key is out of force while a # stands before its name;
# remove the # to set it, and leave the line of its section as it is. Write only the keys that you change: the
# defaults of the others may improve with a new version.
#
#   attune-executor serve --config attune.yaml
#   attune-executor config explain --config attune.yaml     # what is in force, and where it comes from
#
# The environment overrides a key: executor.no_workers is ATTUNE__EXECUTOR__NO_WORKERS. Durations are a plain
# number (seconds; milliseconds if the key ends in _ms) or Go syntax such as 1m30s.
#
# This file is made from the code: go test ./core/config -run Example -update

`

// TestExample keeps config.example.yaml equal to the fields, comments and defaults of Config.
func TestExample(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString(exampleIntroduction)
	exemplify(t, &out, fieldComments(t), "", reflect.ValueOf(*config.Default()))

	path := filepath.Join("..", "..", "config.example.yaml")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(file), out.String(), "run `go test ./core/config -run Example -update`")
}

// commentedKey is a line with a key that is out of force; comments have a space after the #.
var commentedKey = regexp.MustCompile(`(?m)^( *)#([a-z_]+:)`)

// TestTheExampleHasEveryKeyWithItsDefault loads the file as it is, and with every key in force.
func TestTheExampleHasEveryKeyWithItsDefault(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(filepath.Join("..", "..", "config.example.yaml"))
	require.NoError(t, err)
	cfg, err := config.Load(write(t, string(file)), nil)
	require.NoError(t, err)
	require.Empty(t, cfg.Warnings)
	require.Equal(t, config.Default().Explain(), cfg.Explain(), "the file sets keys that should be out of force")

	inForce := write(t, commentedKey.ReplaceAllString(string(file), "$1$2"))
	cfg, err = config.Load(inForce, nil)
	require.NoError(t, err)
	require.Empty(t, cfg.Warnings)
	require.Equal(t, config.Default().Database, cfg.Database)
	require.Equal(t, config.Default().MessageQueue, cfg.MessageQueue)
	defaults := config.Default().Explain()
	for i, entry := range cfg.Explain() {
		require.Equal(t, defaults[i].Key, entry.Key)
		require.Equal(t, defaults[i].Value, entry.Value, entry.Key)
		if !strings.HasPrefix(entry.Key, "alerts.") { // a rule leaves out the keys that are empty
			require.Contains(t, entry.Source, inForce+":", "%s is not in config.example.yaml", entry.Key)
		}
	}
	for rule := range config.Default().Alerts {
		require.Contains(t, string(file), "\n  #"+rule+": {")
	}
	for _, key := range slices.Collect(maps.Keys(config.FileVariants)) {
		_, name, _ := strings.Cut(key, ".")
		require.Contains(t, string(file), name)
	}
}

// exemplify writes the keys of a section, then its nested sections.
func exemplify(t *testing.T, out *strings.Builder, comments map[string]string, prefix string, section reflect.Value) {
	t.Helper()
	indent := strings.Repeat("  ", strings.Count(prefix, "."))
	var nested []int
	for i := range section.NumField() {
		field := section.Type().Field(i)
		key := field.Tag.Get("key")
		switch {
		case key == "" || key == "-":
			continue
		case field.Type.Kind() == reflect.Struct, field.Type == reflect.TypeFor[map[string]*config.AlertRule]():
			nested = append(nested, i)
			continue
		}
		comment := comments[section.Type().Name()+"."+field.Name]
		if allowed := field.Tag.Get("oneof"); allowed != "" {
			comment += " Allowed: " + strings.ReplaceAll(allowed, " ", ", ") + "."
		}
		if limits := field.Tag.Get("range"); limits != "" {
			comment += " Allowed: " + strings.Replace(limits, "..", " to ", 1) + "."
		}
		if _, note := defaultOf(t, prefix+key); note != "" {
			comment += " " + strings.ToUpper(note[:1]) + note[1:] + "."
		}
		if files := secretFiles(prefix + key); files != "" {
			comment += " It can be in a file: " + files + "."
		}
		writeComment(out, indent, comment)
		fmt.Fprintf(out, "%s#%s: %s\n", indent, key, literal(t, section.Field(i)))
	}
	for _, i := range nested {
		field := section.Type().Field(i)
		key := field.Tag.Get("key")
		fmt.Fprintf(out, "\n%s%s:\n", indent, key)
		if field.Type.Kind() == reflect.Struct {
			exemplify(t, out, comments, prefix+key+".", section.Field(i))
			continue
		}
		exemplifyRules(t, out, comments)
	}
}

// exemplifyRules writes the keys of a rule, and the built-in rules without their empty keys.
func exemplifyRules(t *testing.T, out *strings.Builder, comments map[string]string) {
	t.Helper()
	writeComment(out, "  ", "Rules by name. Change a built-in rule by its name; a new name adds a rule. The keys of a rule:")
	for field := range reflect.TypeFor[config.AlertRule]().Fields() {
		comment := comments["AlertRule."+field.Name]
		if allowed := field.Tag.Get("oneof"); allowed != "" {
			comment += " Allowed: " + strings.ReplaceAll(allowed, " ", ", ") + "."
		}
		writeComment(out, "  ", field.Tag.Get("key")+": "+comment)
	}
	rules := config.Default().Alerts
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		var keys []string
		value := reflect.ValueOf(*rules[name])
		for i := range value.NumField() {
			key := value.Type().Field(i).Tag.Get("key")
			if !value.Field(i).IsZero() || key == "enabled" {
				keys = append(keys, key+": "+literal(t, value.Field(i)))
			}
		}
		fmt.Fprintf(out, "  #%s: {%s}\n", name, strings.Join(keys, ", "))
	}
}

func secretFiles(key string) string {
	var names []string
	for variant, target := range config.FileVariants {
		if target == key {
			names = append(names, variant[strings.LastIndexByte(variant, '.')+1:])
		}
	}
	slices.Sort(names)
	slices.Reverse(names) // url_file before password_file
	return strings.Join(names, "; or only its password: ")
}

// literal writes a value as YAML on one line.
func literal(t *testing.T, value reflect.Value) string {
	t.Helper()
	if duration, ok := reflect.TypeAssert[time.Duration](value); ok {
		return config.DurationText(duration)
	}
	var node yaml.Node
	require.NoError(t, node.Encode(value.Interface()))
	node.Style = yaml.FlowStyle
	text, err := yaml.Marshal(&node)
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}

// writeComment writes a text in lines of at most 110 columns.
func writeComment(out *strings.Builder, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 110 {
			out.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	out.WriteString(line + "\n")
}
