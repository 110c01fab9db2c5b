package pack

import (
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/yamldoc"
)

// Refs lists the refs that the set describes or names, by kind.
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
	for i := range s.Policies {
		add(KindPack, s.Policies[i].Pack)
		add(KindAction, s.Policies[i].Action)
	}
	list := map[Kind][]string{}
	for kind, of := range refs {
		list[kind] = slices.Sorted(maps.Keys(of))
	}
	return list
}

// Found is an existing item.
type Found struct {
	Pack  string // ref, empty for none
	Adhoc bool   // created with the API
	// ParamSchema describes the parameters of an action; may be nil.
	ParamSchema any
	// OutSchema describes the payload of a trigger's events, or the output of an action; may be nil.
	OutSchema any
	// Prints says that the action prints its result as JSON.
	Prints bool
	// Broken says that the parameters of an action cannot be read.
	Broken bool
}

// World has the existing items that a set describes or names.
type World struct {
	Has map[Kind]map[string]Found // by kind and ref
	// Runtimes are all existing runtimes.
	Runtimes []Runtime
	// Hints are the candidates for the hint at an unknown ref, by kind.
	Hints map[Kind][]string
	// Doomed are the existing items that the same run deletes, by kind and ref; no item may name them.
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

// FindRuntime finds the runtime of an action: by its ref, as one of the core pack, by name or by alias. It is nil if
// there is none.
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
			Broken: item.Broken["parameters"],
		}
		after.Hints[item.Kind] = append(after.Hints[item.Kind], item.Ref)
		if item.Kind == KindRuntime {
			after.Runtimes = append(after.Runtimes, RuntimeOf(item.Ref, item.Columns))
		}
	}
	return after
}

// RuntimeOf is the runtime of a row.
func RuntimeOf(ref string, columns map[string]any) Runtime {
	r := Runtime{Ref: ref, Name: text(columns, "name")}
	list, _ := columns["aliases"].([]any)
	for _, one := range list {
		if name, ok := one.(string); ok {
			r.Aliases = append(r.Aliases, name)
		}
	}
	return r
}

// Check compares a set with the database: every named item must exist there or in the set, and no described item may
// belong to another pack. Mistakes and warnings are in order.
func (s *Set) Check(world World) (mistakes, warnings []Mistake) {
	c := itemChecker{set: s, before: world, after: world.With(s), schemas: map[string]*schema.Schema{}}
	for _, item := range s.Items {
		c.item(item)
	}
	for i := range s.Policies {
		c.policy(&s.Policies[i])
	}
	return Sort(c.Mistakes), Sort(c.Warnings)
}

type itemChecker struct {
	set           *Set
	before, after World
	schemas       map[string]*schema.Schema // of the parameters of actions
	yamldoc.Report
}

func (c *itemChecker) item(item *Item) {
	if item.Ref == "" {
		return // identify has reported it
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
		c.Mistakef(item.At("ref"), "there is no pack %s%s", item.Pack, phrase.DidYouMean(item.Pack,
			c.after.Hints[KindPack]))
	}
	c.exists(KindAction, item.Action, item.At("action"))
	c.exists(KindTrigger, item.Trigger, item.At("trigger"))
	for _, use := range item.Uses {
		c.exists(KindAction, use.Ref, use.Place)
		c.params(use.Ref, use.Input, use.Place, "the task "+use.Task)
		if use.Ref == askAction {
			c.ask(use)
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

// params refuses parameters of a rule or a task that the action refuses, and warns of unknown ones whose name resembles
// a parameter. The values of templates are unknown.
func (c *itemChecker) params(ref string, given any, at Place, who string) {
	action, ok := c.after.found(KindAction, ref)
	params, isObject := given.(map[string]any)
	if !ok || action.ParamSchema == nil || !isObject || params == nil {
		return
	}
	parsed := c.paramsOf(ref)
	plain, _ := expr.Value(params).(map[string]any)
	for _, mistake := range parsed.ValidateParams(plain, schema.AllowTemplates()) {
		c.Mistakef(at, "the action %s will not take the parameters of %s: %s", ref, who, mistake.String())
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if _, known := parsed.Lacks([]string{name}); ref != askAction && phrase.DidYouMean(name, known) != "" {
			c.Warnf(at, "the action %s has no parameter %s of %s%s", ref, name, who, phrase.DidYouMean(name, known))
		}
	}
}

// runtime warns of an unknown runtime: the action gets none. Native programs need none.
func (c *itemChecker) runtime(item *Item) {
	if placement.NormalizeRuntime(item.Runtime) == "native" {
		return
	}
	var names []string
	for _, known := range c.after.Runtimes {
		names = append(names, known.Ref)
	}
	slices.Sort(names)
	text := "there is no runtime " + item.Runtime
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

// prunes is the reason for a mistake at a named item that the run deletes.
const prunes = "--prune would delete it"

// Missing lists the kinds with unknown refs, for which the candidates of hints must be read.
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
