package pack

import (
	"strings"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/yamldoc"
)

// Kind is the kind of an item.
type Kind string

// The kinds, in the order of their dependencies: an item names only items of earlier kinds.
const (
	KindPack     Kind = "pack"
	KindRuntime  Kind = "runtime"
	KindWorkflow Kind = "workflow"
	KindAction   Kind = "action"
	KindTrigger  Kind = "trigger"
	KindRule     Kind = "rule"
	KindPolicy   Kind = "policy"
)

// Kinds are the kinds of Item in order. A Policy is not an Item.
var Kinds = []Kind{KindPack, KindRuntime, KindWorkflow, KindAction, KindTrigger, KindRule}

type key struct {
	name    string   // in the documentation
	also    []string // other names
	instead string   // another key that counts if this one is missing
	column  string   // of the table; empty for that of the name
	read    read
	absent  any // the value if the key is missing; nil is null
	// keep leaves the value of an existing row if the key is missing; once also if it is given.
	keep, once bool
	required   bool
}

// form has the keys of a kind of file.
type form struct {
	keys    []key
	foreign []string // keys of other programs, without effect here
}

func (f form) names() []string {
	var names []string
	for _, k := range f.keys {
		names = append(append(names, k.name), k.also...)
	}
	return names
}

func (f form) known() []yamldoc.Key {
	known := make([]yamldoc.Key, len(f.keys))
	for i, k := range f.keys {
		known[i] = yamldoc.Key{Name: k.name, Also: k.also}
	}
	return known
}

// instead returns the key that the name replaces, empty for none.
func (f form) instead(name string) string {
	for _, k := range f.keys {
		if k.instead == name {
			return k.name
		}
	}
	return ""
}

var (
	emptyList   = []any{}
	emptyObject = map[string]any{}
)

// described adds the keys of the ref and the texts.
func described(more ...key) []key {
	return append([]key{
		{name: "ref", read: readText, required: true},
		{name: "label", read: readText},
		{name: "description", read: readText},
	}, more...)
}

// aside are keys for people and other programs, in files of every kind.
var aside = []string{
	"name", "tags", "pack", "pack_ref", "examples", "metadata", "meta", "notes", "documentation",
	"version",
}

// forms has the keys of each kind, except those of workflows, which package workflow reads.
var forms = map[Kind]form{
	KindPack: {
		keys: []key{
			{name: "ref", read: readText, required: true},
			{name: "label", instead: "name", read: readText},
			{name: "description", read: readText},
			{name: "version", read: readVersion, required: true},
			{name: "conf_schema", also: []string{"config_schema"}, read: readSchema, absent: emptyObject},
			{name: "config", read: readObject, absent: emptyObject, once: true},
			{name: "meta", instead: "metadata", read: readObject, absent: emptyObject},
			{name: "tags", instead: "keywords", read: readTexts, absent: emptyList},
			{name: "runtime_deps", read: readTexts, absent: emptyList},
			{name: "dependencies", read: readTexts, absent: emptyList},
			{name: "is_standard", also: []string{"system"}, read: readBool, absent: false},
		},
		foreign: []string{
			"name", "metadata", "keywords", "author", "email", "enabled", "testing", "license", "homepage",
			"repository",
			"contributors", "python", "nodejs",
		},
	},
	KindRuntime: {
		keys: []key{
			{name: "ref", read: readText, required: true},
			{name: "name", read: readText},
			{name: "description", read: readText},
			{name: "aliases", read: readLowerTexts, absent: emptyList},
			{name: "distributions", read: readObject, absent: emptyObject},
			{name: "installation", read: readAny},
			{name: "execution_config", read: readObject, absent: emptyObject},
		},
		foreign: append([]string{
			"label", "runtime_type", "versions", "auto_detected", "detection_config",
			"installers",
		}, aside...),
	},
	KindAction: {
		keys: actionKeys,
		foreign: append([]string{"enabled", "is_adhoc", "reference_visibility", "reference_allowed_pack_refs"},
			aside...),
	},
	KindTrigger: {
		keys:    triggerKeys,
		foreign: append([]string{"type", "is_adhoc", "reference_visibility", "reference_allowed_pack_refs"}, aside...),
	},
	KindRule: {keys: ruleKeys, foreign: append([]string{
		"is_adhoc", "owner_identity", "trace_tag_template", "sensor_worker_selector", "sensor_worker_tolerations",
		"sensor_worker_affinity",
	}, aside...)},
}

var actionKeys = append(described(
	key{name: "entry_point", also: []string{"entrypoint"}, column: "entrypoint", read: readText},
	key{name: "runner_type", also: []string{"runtime"}, read: readText},
	key{name: "workflow_file", read: readText},
	key{name: "parameters", also: []string{"param_schema"}, column: "param_schema", read: readSchema},
	key{name: "output", also: []string{"out_schema", "output_schema"}, column: "out_schema", read: readSchema},
	key{name: "parameter_delivery", read: readWord("stdin", "file"), absent: "stdin"},
	key{name: "parameter_format", read: readWord("json", "dotenv", "yaml"), absent: "json"},
	key{name: "output_format", read: readWord("text", "json", "yaml", "jsonl"), absent: "text"},
	key{name: "timeout_seconds", also: []string{"timeout"}, read: readSeconds},
	key{name: "scheduled_timeout_seconds", read: readSeconds},
	key{name: "max_retries", read: readCount, absent: 0},
	key{name: "accesses_mcp", read: readBool, absent: false},
	key{name: "default_execution_permission_set_refs", read: readTexts, absent: emptyList},
	key{name: "log_retention_policy", read: readRetention},
	key{name: "log_retention_limit", read: readNumber},
	key{name: "artifact_retention_policy", read: readRetention},
	key{name: "artifact_retention_limit", read: readNumber},
), placementKeys()...)

// placementKeys are the keys that restrict the workers of an action.
func placementKeys() (keys []key) {
	for _, f := range placement.Fields() {
		k := key{name: f.Name, column: f.Column, read: readPlacement(f), absent: f.Empty}
		if f.Column != f.Name {
			k.also = []string{f.Column}
		}
		keys = append(keys, k)
	}
	return keys
}

var triggerKeys = described(
	key{name: "enabled", read: readBool, absent: true, keep: true},
	key{name: "parameters", also: []string{"param_schema"}, column: "param_schema", read: readSchema},
	key{
		name: "output", also: []string{"out_schema", "output_schema", "payload_schema"}, column: "out_schema",
		read: readSchema,
	},
)

var ruleKeys = described(
	key{name: "trigger", also: []string{"trigger_ref"}, column: "trigger_ref", read: readText, required: true},
	key{name: "action", also: []string{"action_ref"}, column: "action_ref", read: readText, required: true},
	key{name: "conditions", read: readAny, absent: emptyList},
	key{name: "action_params", read: readObject, absent: emptyObject},
	key{name: "trigger_params", read: readObject, absent: emptyObject},
	key{name: "permission_set_refs", also: []string{"permission_set_ref"}, read: readTextOrTexts},
	key{name: "enabled", read: readBool, absent: true, keep: true},
)

// Keys lists all names of the keys of a kind of file.
func Keys(kind Kind) []string { return forms[kind].names() }

// NamesFile reports whether an entry point is the name of a file, not shell code: one word with a dot or a slash.
func NamesFile(entry string) bool {
	entry = strings.TrimSpace(entry)
	return strings.ContainsAny(entry, "./") && !strings.ContainsAny(entry, " \t\r\n\"#$&'()*;<=>?[\\]`{|}~!")
}
