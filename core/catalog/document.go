package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
)

// shownAs are the columns that users know by the key of the file. Hidden columns, which another
// column shows in words, are empty.
var shownAs = map[string]string{
	"entrypoint": "entry_point", "param_schema": "parameters", "out_schema": "output", "action_ref": "action",
	"trigger_ref": "trigger", "runtime_ref": "runner_type", "workflow_ref": "workflow", "pack_ref": "pack",
	"runtime_version_constraint": "runtime_version", "window_seconds": "window",
	"queue_timeout_seconds": "queue_timeout", "adaptive_min": "adaptive.min", "adaptive_latency_ms": "adaptive.latency",
	"pack": "", "action": "", "trigger": "", "runtime": "", "workflow_def": "",
}

// inWords is the column that shows in words what an id refers to.
var inWords = map[string]string{
	"pack": "pack_ref", "action": "action_ref", "trigger": "trigger_ref", "runtime": "runtime_ref",
	"workflow_def": "workflow_ref",
}

// units are those of columns with a duration of a policy.
var units = map[string]time.Duration{
	"window_seconds": time.Second, "queue_timeout_seconds": time.Second, "adaptive_latency_ms": time.Millisecond,
}

// otherSecrets marks a value that looks unchanged.
const otherSecrets = " (with other secrets)"

// documentDifference lists the columns of these that change, without their secrets.
func documentDifference(was, wanted map[string]any, columns []string, hidden redactions) []FieldChange {
	changes := []FieldChange{}
	for _, column := range columns {
		before, after := was[column], plain(wanted[column])
		if expr.Equal(before, after) {
			continue
		}
		name, known := shownAs[column]
		if known && name == "" {
			words := inWords[column]
			if !expr.Equal(was[words], plain(wanted[words])) {
				continue // its words differ as well
			}
			// Its target was deleted meanwhile and exists again.
			changes = append(changes, FieldChange{Key: column, New: shown(words, plain(wanted[words])) + linkedAgain})
			continue
		}
		if !known {
			name = column
		}
		change := FieldChange{
			Key: name, Old: shown(column, hidden[column].hide(before)),
			New: shown(column, hidden[column].hide(after)),
		}
		if hidden[column] != nil && change.Old == change.New {
			change.New += otherSecrets
		}
		if was == nil && change.New == "" {
			continue
		}
		changes = append(changes, change)
	}
	return changes
}

// plain is a value in the form in which the database returns it.
func plain(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		return value
	}
	var back any
	if jsonvalue.Decode(raw, &back) != nil {
		return value
	}
	return back
}

// shown is a value for users; a definition is shown by a digest only.
func shown(column string, value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case json.Number:
		if count, err := value.Int64(); err == nil && units[column] != 0 {
			return config.DurationText(time.Duration(count) * units[column])
		}
	case []any:
		if texts, ok := allTexts(value); ok {
			return list(texts)
		}
	case map[string]any:
		if column == "definition" {
			return definitionShown(value)
		}
	}
	raw, err := jsonvalue.Encode(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

func allTexts(values []any) ([]string, bool) {
	texts := make([]string, len(values))
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			return nil, false
		}
		texts[i] = text
	}
	return texts, true
}

func definitionShown(definition map[string]any) string {
	tasks, _ := definition["tasks"].([]any)
	count := phrase.Plural(len(tasks), "task", "tasks")
	raw, err := json.Marshal(definition)
	if err != nil {
		return count
	}
	sum := sha256.Sum256(raw)
	return count + " (" + hex.EncodeToString(sum[:4]) + ")"
}
