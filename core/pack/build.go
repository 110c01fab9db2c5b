package pack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// builder makes a set of several files.
type builder struct {
	set *Set
	yamldoc.Report
	packs  map[string]string  // refs by folder
	linked map[string][]*Item // actions by linkName of their workflow file
	left   map[string]bool    // folders of packs with a file that is left out
	unused []unusedKey        // one for each kind and name
}

// unusedKey is a key without effect.
type unusedKey struct {
	kind    Kind
	name    string
	first   Mistake
	files   map[string]bool
	refused bool // it is a mistake, since its author probably meant another key
}

func (b *builder) read(source Source) {
	r := &reader{Reader: yamldoc.Reader{File: source.Name}}
	switch source.Kind {
	case KindPolicy:
		policies, mistakes := Parse(source.Name, source.Content)
		for i := range policies {
			policies[i].Folder = b.packs[source.Root]
		}
		b.set.Policies = append(b.set.Policies, policies...)
		b.Mistakes = append(b.Mistakes, mistakes...)
		return
	case KindWorkflow:
		b.workflow(source)
		return
	default:
	}
	nodes := r.mappings(source)
	if len(r.Mistakes) > 0 {
		b.unread(source)
	}
	r.packUnread = b.packs[source.Root] == "" && len(b.set.unread[KindPack]) > 0
	for _, node := range nodes {
		named := slices.ContainsFunc(r.Pairs(node), func(f yamldoc.Field) bool {
			return f.Name == "ref" && f.Key.Kind == yaml.ScalarNode && !yamldoc.IsNull(f.Value)
		})
		if source.Kind != KindPack && !named {
			if !source.Context {
				b.leave(r, source, node)
			}
			continue
		}
		item := r.item(source.Kind, node, b.packs[source.Root])
		if item.Ref == "" {
			b.unread(source)
		}
		if source.Kind == KindPack && source.Root != "" {
			b.packs[source.Root] = item.Ref
		}
		if source.Context {
			continue
		}
		if file, ok := item.Columns["workflow_file"].(string); ok {
			b.link(r, item, source, file)
		}
		b.set.Items = append(b.set.Items, item)
		if source.Kind == KindPack && source.Root != "" && item.Ref != "" && !source.Single {
			b.set.Whole = append(b.set.Whole, item.Ref)
		}
	}
	if !source.Context {
		b.Mistakes = append(b.Mistakes, r.Mistakes...)
		b.Warnings = append(b.Warnings, r.Warnings...)
		b.collectUnused(r.unused)
	}
}

// unread records that a file has an item with an unknown ref.
func (b *builder) unread(source Source) {
	if b.set.unread == nil {
		b.set.unread = map[Kind][]string{}
	}
	b.set.unread[source.Kind] = append(b.set.unread[source.Kind], b.packs[source.Root])
}

// leave leaves out an item without a ref, as other loaders do. Nothing of its pack is pruned then.
func (b *builder) leave(r *reader, source Source, node *yaml.Node) {
	b.left[source.Root] = true
	r.Warnf(r.At(node), "it is left out: the %s has no ref", source.Kind)
	unread := &reader{Reader: yamldoc.Reader{File: r.File}}
	unread.given(forms[source.Kind], node, source.Kind)
	r.unused = append(r.unused, unread.unused...)
}

// collectUnused reports the refused keys of a file, and collects the others without effect.
func (b *builder) collectUnused(keys []unusedKey) {
	for _, found := range keys {
		if found.refused {
			b.Mistakes = append(b.Mistakes, found.first)
			continue
		}
		i := slices.IndexFunc(b.unused, func(k unusedKey) bool { return k.kind == found.kind && k.name == found.name })
		if i < 0 {
			found.files = map[string]bool{}
			i, b.unused = len(b.unused), append(b.unused, found)
		}
		b.unused[i].files[found.first.Place.File] = true
	}
}

// mappings returns the documents of a file, one for each item.
func (r *reader) mappings(source Source) []*yaml.Node {
	var nodes []*yaml.Node
	for _, root := range r.Documents(source.Content) {
		switch {
		case yamldoc.IsNull(root):
		case root.Kind != yaml.MappingNode:
			r.Mistakef(r.At(root), "this is not %s: write a mapping with ref and so on", article(source.Kind))
		default:
			nodes = append(nodes, root)
		}
	}
	if len(nodes)+len(r.Mistakes) == 0 {
		r.Mistakef(Place{File: r.File}, "it describes no %s", source.Kind)
	}
	return nodes
}

func article(kind Kind) string {
	if kind == KindAction {
		return "an action"
	}
	return "a " + string(kind)
}

// item reads one item. packRef is the pack of its folder, empty if unknown.
func (r *reader) item(kind Kind, node *yaml.Node, packRef string) *Item {
	f := forms[kind]
	item := &Item{Kind: kind, Columns: map[string]any{}, Place: r.At(node), places: map[string]Place{}}
	given := r.given(f, node, kind)
	values := map[string]any{}
	broken := map[string]bool{}
	for _, k := range f.keys {
		value := k.absent
		entry, ok := given[k.name]
		if ok {
			item.places[k.name] = r.At(entry.Key)
			if value, ok = k.read(r, entry); !ok {
				value, broken[k.name] = k.absent, true
			}
		} else if k.required {
			r.Mistakef(item.Place, "the %s%s has no %s", kind, ofRef(given), k.name)
		}
		if k.once || k.keep && !given[k.name].Given() {
			item.Keep = append(item.Keep, cmp.Or(k.column, k.name))
		}
		values[k.name] = value
		item.Columns[cmp.Or(k.column, k.name)] = value // finish removes names that are no columns
	}
	item.Broken = broken
	r.identify(item, values, packRef, broken)
	r.finish(item, values, given, broken)
	return item
}

func ofRef(given yamldoc.Fields) string {
	if f, ok := given["ref"]; ok && f.Value.Kind == yaml.ScalarNode && f.Value.Value != "" {
		return " " + yamldoc.KeyName(f.Value)
	}
	return ""
}

// given returns the keys of a document by their documented names.
func (r *reader) given(f form, node *yaml.Node, kind Kind) yamldoc.Fields {
	instead := yamldoc.Fields{}
	given := r.Mapping(node, f.known(), func(entry yamldoc.Field) {
		switch name := entry.Name; {
		case strings.HasPrefix(name, "_"), strings.HasPrefix(name, "x-"):
		case f.instead(name) != "" && !yamldoc.IsNull(entry.Value):
			entry.Name = f.instead(name)
			instead[entry.Name] = entry
		default:
			r.noEffect(entry.Key, f, kind)
		}
	})
	for name, entry := range instead {
		if given[name].Given() {
			r.noEffect(entry.Key, f, kind)
			continue
		}
		given[name] = entry
	}
	return given
}

// noEffect reports a key without effect. A key of other programs is a warning, and so is a key that resembles no known
// one, since other versions may have it. A key that resembles a known one is a mistake, as is any unknown key of a
// rule, whose author may have meant a condition.
func (r *reader) noEffect(at *yaml.Node, f form, kind Kind) {
	found := unusedKey{kind: kind, name: at.Value}
	text := fmt.Sprintf("%s of %s has no effect", yamldoc.KeyName(at), article(kind))
	if !slices.Contains(f.foreign, at.Value) {
		near := phrase.DidYouMean(at.Value, f.names())
		found.refused = near != "" || kind == KindRule
		text = fmt.Sprintf("%s is not a known key of %s", yamldoc.KeyName(at), article(kind)) + near
		if !found.refused {
			text += " and has no effect"
		}
	}
	found.first = Mistake{Place: r.At(at), Text: text}
	r.unused = append(r.unused, found)
}

var (
	packName = regexp.MustCompile(`^[a-z][a-z0-9_-]+$`)
	itemName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
)

// identify checks the ref of an item and finds its pack.
func (r *reader) identify(item *Item, values map[string]any, packRef string, broken map[string]bool) {
	ref, _ := values["ref"].(string)
	at := item.At("ref")
	if ref == "" || broken["ref"] {
		if item.places["ref"] != (Place{}) && !broken["ref"] {
			r.Mistakef(at, "ref is empty")
		}
		item.Pack = packRef
		return
	}
	if item.Kind == KindPack {
		if !packName.MatchString(ref) {
			r.Mistakef(at, "ref is %q; that of a pack has two or more characters: a letter, then a-z, 0-9, _ and -, "+
				"in lower case", ref)
			return
		}
		item.Ref, item.Pack = ref, ref
		return
	}
	if item.Kind == KindRule && !strings.Contains(ref, ".") && packRef != "" {
		ref = packRef + "." + ref
	}
	first, second, _ := strings.Cut(ref, ".")
	switch {
	case r.packUnread && second == "": // its pack cannot be read
	case !packName.MatchString(first) || !itemName.MatchString(second):
		r.Mistakef(at, "ref is %q; it must be the pack, a dot and a name in lower case, as in %s.%s", ref,
			cmp.Or(packRef, "deploy"), "rollout")
	case packRef != "" && first != packRef:
		r.Mistakef(at, "ref is %s; in the pack %s it begins with %s.", ref, packRef, packRef)
	default:
		item.Ref, item.Pack = ref, first
	}
}
