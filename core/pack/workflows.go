package pack

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/core/yamldoc"
)

// WorkflowPath is the path in the pack of an action's workflow_file, empty if it leads out of actions/workflows.
func WorkflowPath(file string) string {
	clean := path.Clean(file)
	if path.IsAbs(file) || !strings.HasPrefix(clean, "workflows/") {
		return ""
	}
	return "actions/" + clean
}

// WorkflowFiles lists the paths in the pack of each workflow_file in a file of actions.
func WorkflowFiles(content []byte) []string {
	r := &reader{}
	var files []string
	for _, node := range r.mappings(Source{Content: content, Kind: KindAction}) {
		for _, f := range r.Pairs(node) {
			if f.Key.Value != "workflow_file" || f.Value.Kind != yaml.ScalarNode {
				continue
			}
			if file := WorkflowPath(f.Value.Value); file != "" {
				files = append(files, file)
			}
		}
	}
	return files
}

// link records that an action runs the workflow of a file.
func (b *builder) link(r *reader, item *Item, source Source, file string) {
	delete(item.Columns, "workflow_file")
	within := WorkflowPath(file)
	if within == "" {
		r.Mistakef(item.At("workflow_file"), "workflow_file is %q; it is a path below actions/workflows, such as "+
			"workflows/rollout.workflow.yaml", file)
		return
	}
	name := linkName(source.Root, within)
	b.linked[name] = append(b.linked[name], item)
}

func linkName(root, within string) string { return root + "\x00" + within }

// workflow reads a file with a definition. If no action names the file, the workflow gets an action of its own.
func (b *builder) workflow(source Source) {
	definition, mistakes, warnings := workflow.Parse(source.Name, source.Content)
	if b.leftOut(source, mistakes) {
		return
	}
	b.Mistakes = append(b.Mistakes, mistakes...)
	b.Warnings = append(b.Warnings, warnings...)
	if definition == nil {
		definition = &workflow.Definition{}
	}
	place := Place{File: source.Name, Line: 1, Column: 1}
	name := linkName(source.Root, source.Path)
	actions := b.linked[name]
	delete(b.linked, name)
	if len(actions) == 0 {
		b.alone(source, definition, place, len(mistakes) == 0)
		return
	}
	made := map[string]bool{}
	for _, action := range actions {
		ref := cmp.Or(definition.Ref, action.Ref)
		action.Workflow = ref
		b.inherit(action, definition, len(mistakes) == 0)
		if !made[ref] {
			made[ref] = true
			b.define(definition, ref, action, place)
		}
	}
}

// leftOut warns of a file in the folder workflows that is not named NAME.workflow.yaml and is no valid workflow. The
// existing loader leaves it out too.
func (b *builder) leftOut(source Source, mistakes []workflow.Mistake) bool {
	if len(mistakes) == 0 || strings.Contains(path.Base(source.Path), ".workflow.") ||
		!strings.HasPrefix(source.Path, "workflows/") {
		return false
	}
	b.Warnf(mistakes[0].Place, "the file is left out, as it is not called NAME.workflow.yaml and cannot be run: %s",
		mistakes[0].Text)
	return true
}

// alone creates the action of a workflow that no action file names.
func (b *builder) alone(source Source, definition *workflow.Definition, place Place, sound bool) {
	packRef := b.packs[source.Root]
	ref := definition.Ref
	if ref == "" {
		name, _, _ := strings.Cut(path.Base(source.Path), ".")
		ref = qualified(name, packRef)
	}
	first, second, _ := strings.Cut(ref, ".")
	switch {
	case !packName.MatchString(first) || !itemName.MatchString(second):
		if sound || definition.Ref != "" {
			b.Mistakef(place, "the ref of the workflow is %q; it must be the pack, a dot and a name in lower case, "+
				"as in deploy.rollout", ref)
		}
		return
	case packRef != "" && first != packRef:
		b.Mistakef(place, "the ref of the workflow is %s; in the pack %s it begins with %s.", ref, packRef, packRef)
		return
	}
	r := &reader{Reader: yamldoc.Reader{File: source.Name}}
	node := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	action := r.item(KindAction, node, packRef)
	action.Ref, action.Pack, action.Workflow = ref, first, ref
	action.Runtime = ""
	action.Columns["label"] = cmp.Or(definition.Label, Label(ref))
	if definition.Description != "" {
		action.Columns["description"] = definition.Description
	}
	action.Columns["entrypoint"] = "workflows/" + second + ".workflow.yaml"
	delete(action.Columns, "workflow_file")
	b.inherit(action, definition, sound)
	b.set.Items = append(b.set.Items, action)
	b.define(definition, ref, action, place)
}

// inherit copies the schemas of a workflow to its action, unless the action has its own.
func (b *builder) inherit(action *Item, definition *workflow.Definition, sound bool) {
	if !sound && action.Columns["param_schema"] == nil && definition.Parameters == nil {
		action.Broken["parameters"] = true
	}
	if action.Columns["param_schema"] == nil && definition.Parameters != nil {
		action.Columns["param_schema"] = definition.Parameters
	}
	if action.Columns["out_schema"] == nil && definition.Output != nil {
		action.Columns["out_schema"] = definition.Output
	}
}

// define creates the item of a definition. Missing texts are those of its action.
func (b *builder) define(definition *workflow.Definition, ref string, action *Item, place Place) {
	whole := *definition
	whole.Ref = ref
	whole.Label = cmp.Or(definition.Label, text(action.Columns, "label"))
	whole.Description = cmp.Or(definition.Description, text(action.Columns, "description"))
	whole.Version = cmp.Or(definition.Version, "1.0.0")
	var description any
	if whole.Description != "" {
		description = whole.Description
	}
	raw, err := whole.JSON()
	var stored any
	if err == nil {
		err = jsonvalue.Decode(raw, &stored)
	}
	if err != nil {
		b.Mistakef(place, "the workflow cannot be stored: %s", yamldoc.OneLine(err.Error()))
		return
	}
	item := &Item{
		Reads: definition.Reads,
		Kind:  KindWorkflow, Ref: ref, Pack: action.Pack, Place: place, places: map[string]Place{},
		Columns: map[string]any{
			"label": whole.Label, "description": description, "version": whole.Version,
			"param_schema": action.Columns["param_schema"], "out_schema": action.Columns["out_schema"],
			"definition": stored, "tags": anyList(whole.Tags),
		},
	}
	for _, task := range definition.All() {
		if task.Action != "" {
			use := Use{Ref: task.Action, Task: task.Name, Place: task.At}
			if task.Input != nil {
				use.Input, _ = task.Input.Raw().(map[string]any)
			}
			item.Uses = append(item.Uses, use)
		}
	}
	b.set.Items = append(b.set.Items, item)
}

// missing reports workflow files that actions name and that do not exist.
func (b *builder) missing() {
	for _, name := range slices.Sorted(maps.Keys(b.linked)) {
		_, within, _ := strings.Cut(name, "\x00")
		for _, action := range b.linked[name] {
			b.Mistakef(action.At("workflow_file"), "there is no file %s in the pack", within)
		}
	}
}
