package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/workflow"
)

// Item is one item of a pack.
type Item struct {
	Kind Kind
	Ref  string
	// Pack is the ref of its pack; a pack belongs to itself.
	Pack string
	// Columns are the values of the row, without references to other rows.
	Columns map[string]any
	// Keep are columns that keep the value of an existing row.
	Keep []string

	// Runtime is the runtime of an action as the file names it, empty for none.
	Runtime string
	// Workflow is the ref of the definition that an action runs, empty for none.
	Workflow string
	// Action and Trigger are the refs of a rule.
	Action, Trigger string
	// Uses are the actions of a workflow's tasks.
	Uses []Use
	// Reads are the fields of parameters and results in the expressions of a workflow.
	Reads []workflow.Read

	// Broken are the keys with invalid values; checks skip what depends on them.
	Broken map[string]bool

	// Place is the first line of the item.
	Place  Place
	places map[string]Place
}

// Use is an action in a task of a workflow.
type Use struct {
	Ref   string
	Task  string
	Place Place
	// Input are the parameters of the task, with templates; nil if it has none.
	Input map[string]any
}

// At is the place of a key, or of the item if the file does not have the key.
func (i *Item) At(key string) Place {
	if at, ok := i.places[key]; ok {
		return at
	}
	return i.Place
}

// Set has the items of several files.
type Set struct {
	Items    []*Item // in the order of Kinds
	Policies []Policy
	// Whole are the refs of the packs whose whole folder was read: only items in their files belong to them.
	Whole    []string
	Warnings []Mistake

	// unread has the packs of files with an unreadable item, by kind; an empty pack is unknown and may be any.
	unread map[Kind][]string
}

// Unread reports whether the item may be in an unreadable file. Its absence is then no mistake of its own.
func (s *Set) Unread(kind Kind, ref string) bool {
	packRef, _, _ := strings.Cut(ref, ".")
	return slices.ContainsFunc(s.unread[kind], func(of string) bool { return of == "" || of == packRef }) ||
		slices.Contains(s.unread[KindPack], "")
}

// Source is a file to read.
type Source struct {
	// Name is the file's name in places.
	Name string
	Kind Kind
	// Root is the folder of its pack, empty if unknown.
	Root string
	// Path is the file's name in the pack, with slashes.
	Path    string
	Content []byte
	// Context says that only the references of other files need it; its items are not in the set.
	Context bool
	// Single says that the rest of its folder is not read.
	Single bool
}

// Read reads the files together. It returns all readable items, and all mistakes in order.
func Read(sources []Source) (*Set, []Mistake) {
	b := &builder{set: &Set{}, packs: map[string]string{}, linked: map[string][]*Item{}, left: map[string]bool{}}
	ordered := slices.Clone(sources)
	slices.SortStableFunc(ordered, func(a, b Source) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	for _, source := range ordered {
		b.read(source)
	}
	b.missing()
	slices.SortStableFunc(b.set.Items, func(x, y *Item) int {
		return cmp.Or(cmp.Compare(order(x.Kind), order(y.Kind)), cmp.Compare(x.Ref, y.Ref))
	})
	first := refs{}
	for _, item := range b.set.Items {
		b.Mistakes = append(b.Mistakes, first.add(item.Kind, item.Ref, item.At("ref"))...)
	}
	b.Mistakes = append(b.Mistakes, Duplicates(b.set.Policies)...)
	for root := range b.left {
		b.set.Whole = slices.DeleteFunc(b.set.Whole,
			func(ref string) bool { return root != "" && ref == b.packs[root] })
	}
	for _, key := range b.unused {
		if n := len(key.files); n > 1 {
			key.first.Text += fmt.Sprintf(" (%d files)", n)
		}
		b.Warnings = append(b.Warnings, key.first)
	}
	b.set.Warnings = Sort(b.Warnings)
	return b.set, Sort(b.Mistakes)
}

func order(kind Kind) int { return slices.Index(Kinds, kind) }

// rank is the order in which files are read: workflows after the actions that name them, policies after their pack.
func rank(kind Kind) int {
	if kind == KindWorkflow || kind == KindPolicy {
		return len(Kinds)
	}
	return order(kind)
}

type refs map[string]Place

// add records a ref; it returns a mistake if the ref is known.
func (r refs) add(kind Kind, ref string, at Place) []Mistake {
	name := string(kind) + " " + ref
	earlier, known := r[name]
	if known && ref != "" {
		return []Mistake{{Place: at, Text: "the " + name + " is given twice, also at " + earlier.String()}}
	}
	r[name] = at
	return nil
}

// Duplicates reports every ref of more than one policy, at each place but the first.
func Duplicates(policies []Policy) []Mistake {
	var mistakes []Mistake
	first := refs{}
	for i := range policies {
		mistakes = append(mistakes, first.add(KindPolicy, policies[i].Ref, policies[i].At("ref"))...)
	}
	return mistakes
}

// Of lists the items of a kind.
func (s *Set) Of(kind Kind) []*Item {
	var items []*Item
	for _, item := range s.Items {
		if item.Kind == kind {
			items = append(items, item)
		}
	}
	return items
}

// Label makes a label of the name in a ref, as the existing loader does.
func Label(ref string) string {
	_, name, dotted := strings.Cut(ref, ".")
	if !dotted {
		name = ref
	}
	words := strings.Split(name, "_")
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, " ")
}

// Guess returns the kind of a file outside the folders of a pack, by its name and keys. It defaults to a policy.
func Guess(name string, content []byte) Kind {
	switch {
	case name == "pack.yaml" || name == "pack.yml":
		return KindPack
	case strings.Contains(name, ".workflow.y"):
		return KindWorkflow
	}
	r := &reader{}
	nodes := r.mappings(Source{Content: content})
	if len(nodes) == 0 {
		return KindPolicy
	}
	has := map[string]bool{}
	for _, f := range r.Pairs(nodes[0]) {
		has[f.Key.Value] = true
	}
	switch {
	case has["policies"], has["threshold"]:
		return KindPolicy
	case has["tasks"]:
		return KindWorkflow
	case has["entry_point"], has["entrypoint"], has["workflow_file"], has["runner_type"]:
		return KindAction
	case has["trigger"], has["trigger_ref"], has["action_params"]:
		return KindRule
	case has["conf_schema"], has["runtime_deps"]:
		return KindPack
	}
	return KindPolicy
}
