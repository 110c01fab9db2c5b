package pack

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/schema"
)

// Scopes lists the packs of which Check needs all actions, because a policy of the pack names parameters. all means all
// packs.
func (s *Set) Scopes() (packs []string, all bool) {
	for i := range s.Policies {
		switch p := &s.Policies[i]; {
		case len(p.Parameters) == 0 || p.given("action"):
		case p.Pack != "":
			packs = append(packs, p.Pack)
		case !p.given("pack"):
			all = true
		}
	}
	return packs, all
}

// policy checks that the action, the pack and the parameters of a policy exist.
func (c *itemChecker) policy(p *Policy) {
	c.exists(KindPack, p.Pack, p.At("pack"))
	c.exists(KindAction, p.Action, p.At("action"))
	_, packExists := c.after.found(KindPack, p.Pack)
	action, exists := c.after.found(KindAction, p.Action)
	if exists && packExists && action.Pack != p.Pack {
		c.Mistakef(p.At("action"), "the action %s belongs to the pack %s, not to %s", p.Action, action.Pack, p.Pack)
	}
	switch {
	case exists:
		c.paths(p, []string{p.Action}, "the action "+p.Action)
	case p.Action != "":
	case packExists:
		c.paths(p, c.actions(p.Pack), "any action of the pack "+p.Pack)
	case !p.given("pack") && !p.given("action"):
		c.paths(p, c.actions(""), "any action")
	}
}

// actions lists the actions of a pack, or all.
func (c *itemChecker) actions(packRef string) []string {
	refs := slices.Sorted(maps.Keys(c.after.Has[KindAction]))
	return slices.DeleteFunc(refs, func(ref string) bool {
		return packRef != "" && c.after.Has[KindAction][ref].Pack != packRef
	})
}

// paths reports every path that no action of the scope has.
func (c *itemChecker) paths(p *Policy, scope []string, whose string) {
	broken := func(ref string) bool { return c.after.Has[KindAction][ref].Broken }
	if slices.ContainsFunc(scope, broken) {
		return // it may have every parameter
	}
	for _, path := range p.Parameters {
		var names []string
		var deeper string // the explanation of an action that has the first name of the path
		found := slices.ContainsFunc(scope, func(ref string) bool {
			params := c.paramsOf(ref)
			names = append(names, params.Names()...)
			ok, why := params.Find(path)
			deeper = cmp.Or(deeper, why)
			return ok
		})
		first, _, _ := strings.Cut(path, ".")
		switch at := p.At("parameters"); {
		case found:
		case deeper != "":
			c.Mistakef(at, "the path %s is no parameter of %s: %s", path, whose, deeper)
		case len(names) == 0:
			c.Mistakef(at, "the path %s is no parameter of %s: there are none", path, whose)
		default:
			slices.Sort(names)
			c.Mistakef(at, "the path %s is no parameter of %s%s", path, whose,
				phrase.DidYouMean(first, slices.Compact(names)))
		}
	}
}

// paramsOf is the schema of an action's parameters; one that cannot be used has none.
func (c *itemChecker) paramsOf(ref string) *schema.Schema {
	parsed, ok := c.schemas[ref]
	if !ok {
		var err error
		if parsed, err = schema.FromValue(expr.Value(c.after.Has[KindAction][ref].ParamSchema)); err != nil {
			parsed = schema.Any()
		}
		c.schemas[ref] = parsed
	}
	return parsed
}

// nearestAction returns a hint; it also finds the same name in another pack, or without a pack.
func nearestAction(ref string, candidates []string) string {
	if near := phrase.DidYouMean(ref, candidates); near != "" {
		return near
	}
	_, name, dotted := strings.Cut(ref, ".")
	if !dotted {
		name = ref
	}
	for _, candidate := range candidates {
		if _, known, _ := strings.Cut(candidate, "."); known == name {
			return "; the nearest is " + candidate
		}
	}
	return ""
}
