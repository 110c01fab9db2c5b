package pack

import (
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/yamldoc"
)

// finish completes the columns of an item and checks them.
func (r *reader) finish(item *Item, values map[string]any, given yamldoc.Fields, broken map[string]bool) {
	if _, ok := values["label"]; ok && text(values, "label") == "" {
		item.Columns["label"] = Label(item.Ref)
	}
	delete(item.Columns, "ref")
	switch item.Kind {
	case KindRuntime:
		if text(values, "name") == "" {
			_, name, _ := strings.Cut(item.Ref, ".")
			item.Columns["name"] = name
		}
	case KindAction:
		r.finishAction(item, values, given)
	case KindRule:
		r.finishRule(item, values, given, broken)
	default:
	}
}

func text(values map[string]any, name string) string {
	text, _ := values[name].(string)
	return text
}

// finishAction checks how an action is run.
func (r *reader) finishAction(item *Item, values map[string]any, given yamldoc.Fields) {
	delete(item.Columns, "runner_type")
	workflow, linked := given["workflow_file"]
	entry, started := given["entry_point"]
	switch {
	case linked && started:
		r.Mistakef(r.At(entry.Key), "%s and workflow_file in line %d exclude each other: keep one", entry.Key.Value,
			workflow.Key.Line)
	case linked:
		item.Columns["entrypoint"] = text(values, "workflow_file")
		if f, ok := given["runner_type"]; ok {
			r.Warnf(r.At(f.Key), "%s has no effect beside workflow_file: the tasks run, the action does not",
				f.Key.Value)
		}
	case !started:
		delete(item.Columns, "workflow_file")
		item.Columns["entrypoint"] = ""
		r.setRuntime(item, values, given)
		r.Warnf(item.Place, "the action%s has no entry_point and no workflow_file: only a worker that has a "+
			"function for it runs it", ofRef(given))
	default:
		delete(item.Columns, "workflow_file")
		r.setRuntime(item, values, given)
		// An absolute path names a program of the worker.
		if file := text(values, "entry_point"); file == ".." ||
			!path.IsAbs(file) && strings.HasPrefix(path.Clean(file), "../") {
			r.Mistakef(r.At(entry.Value), "%s is %s; it must lie within the pack", entry.Key.Value,
				yamldoc.Show(entry.Value))
		}
	}
	r.retention(given, "log_retention_policy", "log_retention_limit")
	r.retention(given, "artifact_retention_policy", "artifact_retention_limit")
}

func (r *reader) setRuntime(item *Item, values map[string]any, given yamldoc.Fields) {
	item.Runtime = cmp.Or(text(values, "runner_type"), "shell")
	if at, known := given["runner_type"]; known {
		item.places["runtime"] = r.At(at.Value)
	}
}

func (r *reader) retention(given yamldoc.Fields, policy, limit string) {
	p, hasPolicy := given[policy]
	l, hasLimit := given[limit]
	switch {
	case hasPolicy && !hasLimit:
		r.Mistakef(r.At(p.Key), "%s needs %s", policy, limit)
	case hasLimit && !hasPolicy:
		r.Mistakef(r.At(l.Key), "%s needs %s", limit, policy)
	}
}

// finishRule checks conditions and parameters with the code that evaluates them.
func (r *reader) finishRule(item *Item, values map[string]any, given yamldoc.Fields, broken map[string]bool) {
	item.Trigger = qualified(text(values, "trigger"), item.Pack)
	item.Action = qualified(text(values, "action"), item.Pack)
	item.Columns["trigger_ref"], item.Columns["action_ref"] = item.Trigger, item.Action
	for _, name := range []string{"trigger", "action"} {
		if f, ok := given[name]; ok && !broken[name] && text(values, name) == "" {
			r.Mistakef(r.At(f.Key), "%s is empty", f.Key.Value)
		}
	}
	if f, ok := given["conditions"]; ok && !broken["conditions"] {
		r.conditions(item, f, values["conditions"])
	}
	if f, ok := given["action_params"]; ok && !broken["action_params"] {
		r.actionParams(item, f, values["action_params"])
	}
}

func (r *reader) conditions(item *Item, f yamldoc.Field, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		r.Mistakes = append(r.Mistakes, r.ofRule(f, err))
		return
	}
	mistakes, warnings := rule.Check(item.Ref, raw)
	for _, wrong := range mistakes {
		r.Mistakes = append(r.Mistakes, r.ofRule(f, wrong))
	}
	for _, wrong := range warnings {
		r.Warnings = append(r.Warnings, r.ofRule(f, wrong))
	}
}

func (r *reader) actionParams(item *Item, f yamldoc.Field, value any) {
	raw, err := json.Marshal(value)
	if err == nil {
		_, err = rule.ParseParams(item.Ref, raw)
	}
	if err != nil {
		r.Mistakes = append(r.Mistakes, r.ofRule(f, err))
	}
}

// ofRule converts an error of package rule to a mistake at its place.
func (r *reader) ofRule(f yamldoc.Field, err error) Mistake {
	at, what := f.Value, err.Error()
	if wrong, ok := errors.AsType[*rule.Error](err); ok {
		at, what = locate(f, wrong.Part), wrong.Part+": "+wrong.Err.Error()
	}
	return Mistake{Place: r.At(at), Text: yamldoc.OneLine(what)}
}

// locate finds the node of a part such as conditions[2].operator, or the nearest one above it.
func locate(f yamldoc.Field, part string) *yaml.Node {
	node := yamldoc.Follow(f.Value)
	_, rest, _ := strings.Cut(strings.ReplaceAll(part, "[", "."), ".")
	for rest != "" {
		var segment string
		segment, rest, _ = strings.Cut(rest, ".")
		index, isIndex := strings.CutSuffix(segment, "]")
		var inner *yaml.Node
		if i, err := strconv.Atoi(index); isIndex && err == nil && node.Kind == yaml.SequenceNode &&
			i < len(node.Content) {
			inner = yamldoc.Follow(node.Content[i])
		} else {
			inner = yamldoc.Below(node, segment)
		}
		if inner == node {
			return node
		}
		node = inner
	}
	return node
}

func qualified(ref, packRef string) string {
	if ref == "" || packRef == "" || strings.Contains(ref, ".") {
		return ref
	}
	return packRef + "." + ref
}
