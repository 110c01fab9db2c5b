package config_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

const introduction = `# Configuration

` + "```yaml" + `
# attune.yaml
database:
  url: postgresql://attune@db.example.com/attune
  password_file: secrets/database
message_queue:
  url: amqp://attune@mq.example.com/attune
  password_file: secrets/broker
  management_url: http://mq.example.com:15672
security:
  encryption_key_file: secrets/encryption.key    # at least 32 characters; for secret parameters
worker:
  packs_dir: /opt/attune/packs
  max_concurrent_tasks: 20
executor:
  no_workers: wait                               # do not fail executions while no worker is alive
` + "```" + `

    attune-executor serve --config attune.yaml          # or ATTUNE_CONFIG=attune.yaml
    ATTUNE__EXECUTOR__NO_WORKERS=fail attune-executor serve --config attune.yaml
    attune-executor config explain --config attune.yaml

With this page you can look up every key; ` + "[config.example.yaml](../config.example.yaml)" + ` has the same as a file. Write only
the keys that differ from the defaults below. An environment variable overrides a key: ` + "`executor.no_workers`" + ` is
` + "`ATTUNE__EXECUTOR__NO_WORKERS`" + `. In variables write lists and maps as YAML or JSON; words of a list may also be
separated by commas.

- Durations are a plain number (seconds; milliseconds if the key ends in ` + "`_ms`" + `) or Go syntax such as ` + "`1m30s`" + `.
- Secrets can be in files: ` + "`database.url_file`" + `, ` + "`message_queue.url_file`" + `, ` + "`message_queue.management_url_file`" + `,
  ` + "`security.encryption_key_file`" + `, ` + "`security.jwt_secret_file`" + `. ` + "`database.password_file`" + ` and
  ` + "`message_queue.password_file`" + ` replace the password of the URL. A relative path starts at the configuration file.
  A user and a password from a file are read again for every new connection, so you can rotate them without a restart;
  while the file is missing or empty, the last ones are used. Keys that encrypt or sign are read at the start only,
  because all services must change them together.
- In a URL, write the signs ` + "`@ / # ? %`" + ` and blanks of a password encoded: ` + "`p@ss/word`" + ` is ` + "`p%40ss%2Fword`" + `. A
  password in a file stays as it is.
- Unknown keys, wrong types and values out of range are refused, all at once, each with its place and the nearest
  known key. Sections and keys of other Attune services in the same file are ignored and named in one line.
- ` + "`config explain`" + ` prints every key with the value in force and its origin; secrets are masked. With ` + "`--changed`" + ` it
  prints only the keys that you have set.
- You are warned of a variable that looks like a key and has one underscore too few (` + "`ATTUNE_EXECUTOR__…`" + `), and of a
  file with a secret, also of the configuration file itself, that every user of the machine can read.
- ` + "`executor.worker_queue_ttl`" + ` (seconds) is another name of ` + "`message_queue.rabbitmq.worker_queue_ttl_ms`" + `.
  ` + "`attune-executor`" + ` also reads the variables ` + "`ATTUNE_WORKER_NAME`" + ` and ` + "`ATTUNE_WORKER_RUNTIMES`" + ` of existing workers.

This page is made from the code: ` + "`go test ./core/config -run Documentation -update`" + `.
`

// TestDocumentation keeps docs/configuration.md equal to the fields, comments
// and defaults of Config.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	comments := fieldComments(t)
	var out strings.Builder
	out.WriteString(introduction)
	describe(t, &out, comments, "", reflect.ValueOf(*config.Default()))

	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(page), out.String(), "run `go test ./core/config -run Documentation -update`")
}

// TestTheDocumentedFileLoads reads the file that the page shows.
func TestTheDocumentedFileLoads(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(introduction, "```yaml\n")
	text, _, found := strings.Cut(text, "```")
	require.True(t, found)
	path := write(t, text)
	secrets := filepath.Join(filepath.Dir(path), "secrets")
	require.NoError(t, os.Mkdir(secrets, 0o700))
	for name, secret := range map[string]string{
		"database": "d", "broker": "b",
		"encryption.key": strings.Repeat("k", 32),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600))
	}
	cfg, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, "postgresql://attune:d@db.example.com/attune", cfg.Database.URL)
	require.Equal(t, "amqp://attune:b@mq.example.com/attune", cfg.MessageQueue.URL)
	require.Equal(t, "wait", cfg.Executor.NoWorkers)
	require.Empty(t, cfg.Warnings)
}

// fieldComments reads the comment of every field: "Type.Field" to text.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, name := range []string{"config.go", "alerts.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		fieldCommentsOf(file, comments)
	}
	return comments
}

func fieldCommentsOf(file *ast.File, comments map[string]string) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return true
	})
}

// describe writes one table per section; nested sections follow their parent.
func describe(t *testing.T, out *strings.Builder, comments map[string]string, prefix string, section reflect.Value) {
	t.Helper()
	title := "Top level"
	if prefix != "" {
		title = strings.TrimSuffix(prefix, ".")
	}
	fmt.Fprintf(out, "\n## %s\n\n| key | default | allowed | what |\n|---|---|---|---|\n", title)
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
		require.NotEmpty(t, comment, "%s%s needs a comment", prefix, key)
		value, note := defaultOf(t, prefix+key)
		if note != "" {
			comment += " (" + strings.ToUpper(note[:1]) + note[1:] + ".)"
		}
		allowed := strings.ReplaceAll(field.Tag.Get("oneof"), " ", ", ")
		if limits := field.Tag.Get("range"); limits != "" {
			allowed = strings.Replace(limits, "..", " to ", 1)
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", key, value, allowed, comment)
	}
	for _, i := range nested {
		field := section.Type().Field(i)
		if field.Type.Kind() == reflect.Struct {
			describe(t, out, comments, prefix+field.Tag.Get("key")+".", section.Field(i))
			continue
		}
		describeRules(t, out, comments)
	}
}

func defaultOf(t *testing.T, key string) (value, note string) {
	t.Helper()
	for _, entry := range config.Default().Explain() {
		if entry.Key == key {
			if entry.Value != "" {
				entry.Value = "`" + entry.Value + "`"
			}
			return entry.Value, entry.Note
		}
	}
	return "", ""
}

// describeRules writes the keys of an alert rule and the built-in rules.
func describeRules(t *testing.T, out *strings.Builder, comments map[string]string) {
	t.Helper()
	out.WriteString("\n## alerts\n\nRules by name. Change a built-in rule by its name; a new name adds a rule. [alerts.md](alerts.md) " +
		"explains each\nand says what to do.\n\n| key | allowed | what |\n|---|---|---|\n")
	rule := reflect.TypeFor[config.AlertRule]()
	for field := range rule.Fields() {
		comment := comments["AlertRule."+field.Name]
		require.NotEmpty(t, comment)
		allowed := strings.ReplaceAll(field.Tag.Get("oneof"), " ", ", ")
		if field.Name == "Measure" {
			allowed = measureNames()
		}
		if limits := field.Tag.Get("range"); limits != "" {
			allowed = strings.Replace(limits, "..", " to ", 1)
		}
		fmt.Fprintf(out, "| `alerts.NAME.%s` | %s | %s |\n", field.Tag.Get("key"), allowed, comment)
	}
	out.WriteString("\n| built-in rule | measure | above | below | for | severity |\n|---|---|---|---|---|---|\n")
	for _, entry := range config.Default().Explain() {
		name, isRule := strings.CutPrefix(entry.Key, "alerts.")
		name, isFirst := strings.CutSuffix(name, ".enabled")
		if !isRule || !isFirst {
			continue
		}
		cells, note := []string{}, ""
		if enabled, _ := defaultOf(t, entry.Key); enabled != "`true`" {
			note = " (off; setting `above` enables it)"
		}
		for _, key := range []string{"measure", "above", "below", "for", "severity"} {
			value, _ := defaultOf(t, "alerts."+name+"."+key)
			cells = append(cells, value)
		}
		fmt.Fprintf(out, "| `%s`%s | %s |\n", name, note, strings.Join(cells, " | "))
	}
}
