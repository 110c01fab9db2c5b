package pack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/nearest"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/yamldoc"
)

// Refs is what must be looked up for a set, by kind: what it describes and what it
// names.
func (s *Set) Refs() map[Kind][]string {
	refs := map[Kind]map[string]bool{}
	add := func(kind Kind, ref string) {
		if refs[kind] == nil {
			refs[kind] = map[string]bool{}
		}
		if ref != "" {
			refs[kind][ref] = true
		}
	}
	for _, item := range s.Items {
		add(item.Kind, item.Ref)
		add(KindPack, item.Pack)
		add(KindAction, item.Action)
		add(KindTrigger, item.Trigger)
		for _, use := range item.Uses {
			add(KindAction, use.Ref)
		}
	}
	list := map[Kind][]string{}
	for kind, of := range refs {
		list[kind] = slices.Sorted(maps.Keys(of))
	}
	return list
}

// Found is something that the database has.
type Found struct {
	Pack  string // ref of its pack; empty: it has none
	Adhoc bool   // people made it by the API
	// ParamSchema describes the parameters of an action; nil: it does not say.
	ParamSchema any
	// OutSchema describes the payload of the events of a trigger, or what an action prints;
	// nil: it does not say.
	OutSchema any
	// Prints: the result of the action is what it prints as JSON.
	Prints bool
}

// World is what the database has of what a set describes and names.
type World struct {
	// Has is what exists, by kind and ref.
	Has map[Kind]map[string]Found
	// Runtimes are all runtimes that exist, with their other names.
	Runtimes []Runtime
	// Hints are the refs that could have been meant, by kind.
	Hints map[Kind][]string
	// Doomed is what exists and will be deleted together with what is applied, by
	// kind and ref: nothing may name it.
	Doomed map[Kind]map[string]bool
}

// Runtime is a runtime that actions may name.
type Runtime struct {
	Ref, Name string
	Aliases   []string
}

func (w World) found(kind Kind, ref string) (Found, bool) {
	found, ok := w.Has[kind][ref]
	return found, ok
}

// FindRuntime finds the runtime that an action means: by its ref, as one of the
// core pack, by name or by another name. It is nil if there is none.
func (w World) FindRuntime(name string) *Runtime {
	normal := placement.NormalizeRuntime(name)
	for _, match := range []func(Runtime) bool{
		func(r Runtime) bool { return r.Ref == strings.ToLower(name) },
		func(r Runtime) bool {
			packRef, short, _ := strings.Cut(r.Ref, ".")
			return packRef == "core" && placement.NormalizeRuntime(short) == normal
		},
		func(r Runtime) bool { return placement.NormalizeRuntime(r.Name) == normal },
		func(r Runtime) bool {
			return slices.ContainsFunc(r.Aliases,
				func(alias string) bool { return placement.NormalizeRuntime(alias) == normal })
		},
	} {
		if i := slices.IndexFunc(w.Runtimes, match); i >= 0 {
			return &w.Runtimes[i]
		}
	}
	return nil
}

// With is the world after the set was applied.
func (w World) With(s *Set) World {
	after := World{
		Has: map[Kind]map[string]Found{}, Runtimes: slices.Clone(w.Runtimes), Hints: map[Kind][]string{},
		Doomed: w.Doomed,
	}
	for kind, of := range w.Has {
		after.Has[kind] = maps.Clone(of)
		maps.DeleteFunc(after.Has[kind], func(ref string, _ Found) bool { return w.Doomed[kind][ref] })
	}
	for kind, refs := range w.Hints {
		after.Hints[kind] = slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return w.Doomed[kind][ref] })
	}
	for _, item := range s.Items {
		if item.Ref == "" {
			continue
		}
		if after.Has[item.Kind] == nil {
			after.Has[item.Kind] = map[string]Found{}
		}
		after.Has[item.Kind][item.Ref] = Found{
			Pack: item.Pack, ParamSchema: item.Columns["param_schema"], OutSchema: item.Columns["out_schema"],
			Prints: item.Kind == KindAction && item.Workflow == "" && item.Columns["output_format"] == "json",
		}
		after.Hints[item.Kind] = append(after.Hints[item.Kind], item.Ref)
		if item.Kind == KindRuntime {
			after.Runtimes = append(after.Runtimes,
				Runtime{Ref: item.Ref, Name: text(item.Columns, "name"), Aliases: aliases(item)})
		}
	}
	return after
}

func aliases(item *Item) []string {
	list, _ := item.Columns["aliases"].([]any)
	names := make([]string, 0, len(list))
	for _, one := range list {
		if name, ok := one.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// Check compares a set with the database: what its items name must exist there or
// in the set, and what they describe must be theirs. The mistakes are in order;
// warnings are about what will wait.
func (s *Set) Check(world World) (mistakes, warnings []Mistake) {
	c := itemChecker{set: s, before: world, after: world.With(s)}
	for _, item := range s.Items {
		c.item(item)
	}
	return Sort(c.Mistakes), Sort(c.Warnings)
}

type itemChecker struct {
	set           *Set
	before, after World
	yamldoc.Report
}

func (c *itemChecker) item(item *Item) {
	if item.Ref == "" {
		return // that it has none was said
	}
	if found, ok := c.before.found(item.Kind, item.Ref); ok && item.Kind != KindPack {
		switch {
		case found.Adhoc:
			c.Mistakef(item.At("ref"), "the %s %s was made by hand; delete it there, or give this one another ref",
				item.Kind, item.Ref)
		case found.Pack != "" && found.Pack != item.Pack:
			c.Mistakef(item.At("ref"), "the %s %s belongs to the pack %s", item.Kind, item.Ref, found.Pack)
		}
	}
	if _, ok := c.after.found(KindPack, item.Pack); !ok && item.Pack != "" && !c.set.Unread(KindPack, item.Pack) {
		c.Mistakef(item.At("ref"), "there is no pack %s%s", item.Pack, nearest.Hint(item.Pack, c.after.Hints[KindPack]))
	}
	c.exists(KindAction, item.Action, item.At("action"))
	c.exists(KindTrigger, item.Trigger, item.At("trigger"))
	for _, use := range item.Uses {
		c.exists(KindAction, use.Ref, use.Place)
		c.params(use.Ref, use.Input, use.Place, "the task "+use.Task)
		if use.Ref == askAction {
			c.asks(use)
		}
	}
	c.reads(item)
	if item.Kind == KindRule {
		c.templates(item)
		c.conditions(item)
		c.params(item.Action, item.Columns["action_params"], item.At("action_params"), "this rule")
	}
	if item.Runtime != "" && c.after.FindRuntime(item.Runtime) == nil {
		c.runtime(item)
	}
}

// params refuses parameters that an action will not take from a rule or a task, and warns
// of those that it does not know and whose name resembles one. What templates stand for is
// not known.
func (c *itemChecker) params(ref string, given any, at Place, who string) {
	action, ok := c.after.found(KindAction, ref)
	params, isObject := given.(map[string]any)
	if !ok || action.ParamSchema == nil || !isObject || params == nil {
		return
	}
	parsed, err := schema.FromValue(expr.Value(action.ParamSchema))
	if err != nil {
		return
	}
	for _, mistake := range parsed.ValidateParams(plainParams(params), schema.AllowTemplates()) {
		c.Mistakef(at, "the action %s will not take the parameters of %s: %s", ref, who, mistake.String())
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if _, known := parsed.Lacks([]string{name}); ref != askAction && nearest.Hint(name, known) != "" {
			c.Warnf(at, "the action %s has no parameter %s of %s%s", ref, name, who, nearest.Hint(name, known))
		}
	}
}

func plainParams(given map[string]any) map[string]any {
	params, _ := expr.Value(given).(map[string]any)
	return params
}

// runtime warns of a runtime that nobody knows: the action gets none. Programs run
// without one.
func (c *itemChecker) runtime(item *Item) {
	if placement.NormalizeRuntime(item.Runtime) == "native" {
		return
	}
	var names []string
	for _, known := range c.after.Runtimes {
		names = append(names, known.Ref)
	}
	slices.Sort(names)
	text := fmt.Sprintf("there is no runtime %s", item.Runtime)
	if len(names) > 0 {
		text += "; known are " + strings.Join(names, ", ")
	}
	c.Warnf(item.At("runtime"), "%s: the action has none", text)
}

func (c *itemChecker) exists(kind Kind, ref string, at Place) {
	if ref == "" {
		return
	}
	_, ok := c.after.found(kind, ref)
	switch {
	case ok, c.set.Unread(kind, ref):
	case c.after.Doomed[kind][ref]:
		c.Mistakef(at, "there is no %s %s: %s", kind, ref, prunes)
	default:
		c.Mistakef(at, "there is no %s %s%s", kind, ref, nearestAction(ref, c.after.Hints[kind]))
	}
}

// prunes is said of what is named and would be deleted.
const prunes = "--prune would delete it"

// Missing are the kinds of which the set names something that neither the database
// nor the set has, so that hints are worth reading.
func (s *Set) Missing(world World) []Kind {
	after := world.With(s)
	missing := map[Kind]bool{}
	for kind, refs := range s.Refs() {
		for _, ref := range refs {
			if _, ok := after.found(kind, ref); !ok {
				missing[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}
