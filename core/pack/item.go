package pack

import (
	"cmp"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/workflow"
)

// Item is one thing that a file of a pack describes.
type Item struct {
	Kind Kind
	Ref  string
	// Pack is the ref of the pack that it belongs to; a pack belongs to itself.
	Pack string
	// Columns is what the table is to hold, by column. What refers to other items
	// is not among them.
	Columns map[string]any
	// Keep are columns whose value in the table stays where there is one.
	Keep []string

	// Runtime is what an action runs on, as the file names it; empty: nothing.
	Runtime string
	// Workflow is the ref of the definition that an action runs; empty: none.
	Workflow string
	// Action and Trigger are the refs of a rule.
	Action, Trigger string
	// Uses are the actions that the tasks of a workflow name.
	Uses []Use
	// Reads are the fields of parameters and results that the expressions of a workflow
	// read.
	Reads []workflow.Read

	// Broken are the keys whose values cannot be used: what follows from one is not judged.
	Broken map[string]bool

	// Place is where the item begins.
	Place  Place
	places map[string]Place
}

// Use is one naming of an action by the task of a workflow.
type Use struct {
	Ref   string
	Task  string
	Place Place
	// Input are the parameters that it gives, with templates; nil: it does not say.
	Input map[string]any
}

// At is where the key was given, or where the item begins if it was not.
func (i *Item) At(key string) Place {
	if at, ok := i.places[key]; ok {
		return at
	}
	return i.Place
}

// Set is what a number of files describe.
type Set struct {
	// Items are in the order of their kinds.
	Items []*Item
	// Policies have a type of their own.
	Policies []Policy
	// Whole are the packs whose folder was read as a whole, by ref: what they do not
	// describe they do not have.
	Whole []string
	// Warnings are not mistakes: what was said has no effect.
	Warnings []Mistake

	// unread are the kinds of files from which an item could not be made, with the packs of
	// their folders; an empty pack is not known and may be any.
	unread map[Kind][]string
}

// Unread reports whether the item may be in a file that could not be read. That it is
// missing then follows from the mistakes in that file.
func (s *Set) Unread(kind Kind, ref string) bool {
	packRef, _, _ := strings.Cut(ref, ".")
	return slices.ContainsFunc(s.unread[kind], func(of string) bool { return of == "" || of == packRef }) ||
		slices.Contains(s.unread[KindPack], "")
}

// Source is a file to be read.
type Source struct {
	// Name is the file's name in places.
	Name string
	// Kind is what the file describes.
	Kind Kind
	// Root is the folder of the pack that it belongs to; empty: none is known.
	Root string
	// Path is the file's name within its pack, with slashes.
	Path    string
	Content []byte
	// Context is a file that is only looked at, for what others refer to.
	Context bool
	// Single is a file that was read without the rest of its folder.
	Single bool
}

// Read reads the files together. It returns everything that could be recognised,
// and all mistakes in order; of refs that are given twice too.
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
	b.Mistakes = append(b.Mistakes, b.set.twice()...)
	b.Mistakes = append(b.Mistakes, Duplicates(b.set.Policies)...)
	for root := range b.left {
		b.set.Whole = slices.DeleteFunc(b.set.Whole,
			func(ref string) bool { return root != "" && ref == b.packs[root] })
	}
	b.set.Warnings = Sort(append(b.Warnings, b.unusedWarnings()...))
	return b.set, Sort(b.Mistakes)
}

func order(kind Kind) int { return slices.Index(Kinds, kind) }

// rank is the order in which files are read: what others look up comes first.
func rank(kind Kind) int {
	switch kind {
	case KindWorkflow:
		return len(Kinds) // after the actions that name it
	case KindPolicy:
		return len(Kinds) // after the pack in whose folder it is
	default:
		return order(kind)
	}
}

// twice reports refs that more than one item of a kind has.
func (s *Set) twice() []Mistake {
	var mistakes []Mistake
	type name struct {
		kind Kind
		ref  string
	}
	first := map[name]Place{}
	for _, item := range s.Items {
		if item.Ref == "" {
			continue
		}
		n := name{item.Kind, item.Ref}
		if earlier, ok := first[n]; ok {
			mistakes = append(mistakes, Mistake{
				Place: item.At("ref"), Text: "the " + string(item.Kind) + " " + item.Ref + " is given twice, also " +
					"at " + earlier.String(),
			})
			continue
		}
		first[n] = item.At("ref")
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

// Label makes words of the last part of a ref, as the existing loader does.
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

// Guess tells by its keys what a file describes that no folder tells of. What it
// cannot tell is a policy.
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
