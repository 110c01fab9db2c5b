package pack

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// Needs lists the rows that Check needs.
type Needs struct {
	Actions []string // refs of actions that policies name
	Packs   []string // refs of packs that policies name
	// ScopePacks are packs of which Check needs all actions, because a policy of the pack names parameters. ScopeAll
	// means all packs.
	ScopePacks []string
	ScopeAll   bool
}

// NeedsOf lists the rows that Check needs for the policies.
func NeedsOf(policies []Policy) Needs {
	actions, packs, scopes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var needs Needs
	for i := range policies {
		p := &policies[i]
		if p.Action != "" {
			actions[p.Action] = true
		}
		if p.Pack != "" {
			packs[p.Pack] = true
		}
		switch {
		case len(p.Parameters) == 0 || p.given("action"):
		case p.Pack != "":
			scopes[p.Pack] = true
		case !p.given("pack"):
			needs.ScopeAll = true
		}
	}
	needs.Actions, needs.Packs = slices.Sorted(maps.Keys(actions)), slices.Sorted(maps.Keys(packs))
	needs.ScopePacks = slices.Sorted(maps.Keys(scopes))
	return needs
}

// Action is an existing action.
type Action struct {
	Ref         string
	Pack        string // ref
	ParamSchema []byte // JSON; nil if it has no parameters
	Broken      bool   // its parameters cannot be read
}

// Known has the existing rows of Needs.
type Known struct {
	Actions []Action
	Packs   []string
	// ActionRefs and PackRefs are candidates for the hint at an unknown name.
	ActionRefs []string
	PackRefs   []string
	// Doomed are the actions that the same run deletes.
	Doomed map[string]bool
	// Files are the items that are applied with the policies; may be nil.
	Files *Set
}

// Unknown reports whether the needs name unknown actions or packs, for which the candidates of hints must be read.
func (k Known) Unknown(needs Needs) (actions, packs bool) {
	byRef := k.byRef()
	for _, ref := range needs.Actions {
		if _, ok := byRef[ref]; !ok {
			actions = true
		}
	}
	for _, ref := range needs.Packs {
		if !slices.Contains(k.Packs, ref) {
			packs = true
		}
	}
	return actions, packs
}

func (k Known) byRef() map[string]Action {
	byRef := make(map[string]Action, len(k.Actions))
	for _, action := range k.Actions {
		byRef[action.Ref] = action
	}
	return byRef
}

// Check checks that the action, the pack and the parameters of the policies exist. The mistakes are in order.
func Check(policies []Policy, known Known) []Mistake {
	c := checker{known: known, actions: known.byRef(), schemas: map[string]shape{}}
	for i := range policies {
		c.policy(&policies[i])
	}
	return Sort(c.Mistakes)
}

type checker struct {
	known   Known
	actions map[string]Action
	schemas map[string]shape // by ref of the action
	yamldoc.Report
}

func (c *checker) policy(p *Policy) {
	packExists := p.Pack != "" && slices.Contains(c.known.Packs, p.Pack)
	unread := func(kind Kind, ref string) bool { return c.known.Files != nil && c.known.Files.Unread(kind, ref) }
	if p.Pack != "" && !packExists && !unread(KindPack, p.Pack) {
		c.Mistakef(p.At("pack"), "there is no pack %s%s", p.Pack, phrase.DidYouMean(p.Pack, c.known.PackRefs))
	}
	action, exists := c.actions[p.Action]
	switch {
	case p.Action == "":
	case c.known.Doomed[p.Action]:
		c.Mistakef(p.At("action"), "there is no action %s: %s", p.Action, prunes)
		return
	case !exists && unread(KindAction, p.Action):
		return
	case !exists:
		c.Mistakef(p.At("action"), "there is no action %s%s", p.Action, nearestAction(p.Action, c.known.ActionRefs))
		return
	case packExists && action.Pack != p.Pack:
		c.Mistakef(p.At("action"), "the action %s belongs to the pack %s, not to %s", p.Action, action.Pack, p.Pack)
	}
	switch {
	case p.Action != "":
		c.paths(p, []Action{action}, "the action "+p.Action)
	case packExists:
		c.paths(p, c.scope(p.Pack), "any action of the pack "+p.Pack)
	case !p.given("pack") && !p.given("action"):
		c.paths(p, c.scope(""), "any action")
	}
}

// scope lists the known actions of a pack, or all.
func (c *checker) scope(packRef string) []Action {
	if packRef == "" {
		return c.known.Actions
	}
	var list []Action
	for _, action := range c.known.Actions {
		if action.Pack == packRef {
			list = append(list, action)
		}
	}
	return list
}

// paths reports every path that no action of the scope has.
func (c *checker) paths(p *Policy, scope []Action, whose string) {
	if slices.ContainsFunc(scope, func(action Action) bool { return action.Broken }) {
		return // it may have every parameter
	}
	for _, path := range p.Parameters {
		var names []string
		var deeper string // the explanation of an action that has the first name of the path
		found := slices.ContainsFunc(scope, func(action Action) bool {
			s := c.shapeOf(action)
			names = append(names, s.names()...)
			ok, why := s.find(path)
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

func (c *checker) shapeOf(action Action) shape {
	s, ok := c.schemas[action.Ref]
	if !ok {
		s = shapeOf(action.ParamSchema)
		c.schemas[action.Ref] = s
	}
	return s
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
