package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
)

// builder makes a set of files.
type builder struct {
	set      *Set
	mistakes []Mistake
	packs    map[string]string // ref of the pack by its folder
	// linked are the actions that name a workflow file, by the file's path within
	// their pack.
	linked map[string][]*Item
}

func (b *builder) mistakef(at Place, format string, args ...any) {
	b.mistakes = append(b.mistakes, Mistake{at, fmt.Sprintf(format, args...)})
}

// read reads one file.
func (b *builder) read(source Source) {
	r := &reader{file: source.Name}
	switch source.Kind {
	case KindPolicy:
		policies, mistakes := Parse(source.Name, source.Content)
		b.set.Policies = append(b.set.Policies, policies...)
		b.mistakes = append(b.mistakes, mistakes...)
		return
	case KindWorkflow:
		b.workflow(source)
		return
	default:
	}
	for _, node := range r.mappings(source) {
		item := r.item(source.Kind, node, b.packs[source.Root])
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
		b.mistakes = append(b.mistakes, r.mistakes...)
		b.set.Warnings = append(b.set.Warnings, r.warnings...)
	}
}

// mappings are the documents of a file, each of which describes one item.
func (r *reader) mappings(source Source) []*yaml.Node {
	var nodes []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(source.Content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.mistakes = append(r.mistakes, r.syntaxMistake(err))
			return nodes // where the next document begins is not known
		}
		switch {
		case len(document.Content) != 1 || isNull(document.Content[0]):
		case document.Content[0].Kind != yaml.MappingNode:
			r.mistakef(r.at(document.Content[0]), "this is not %s: write a mapping with ref and so on", article(source.Kind))
		default:
			nodes = append(nodes, document.Content[0])
		}
	}
	if len(nodes)+len(r.mistakes) == 0 {
		r.mistakef(Place{File: r.file}, "it describes no %s", source.Kind)
	}
	return nodes
}

func article(kind Kind) string {
	if kind == KindAction {
		return "an action"
	}
	return "a " + string(kind)
}

// item reads one item. packRef is the pack of its folder, if that is known.
func (r *reader) item(kind Kind, node *yaml.Node, packRef string) *Item {
	f := forms[kind]
	item := &Item{Kind: kind, Columns: map[string]any{}, Place: r.at(node), places: map[string]Place{}}
	given := r.given(f, node, kind)
	values := map[string]any{}
	broken := map[string]bool{}
	for _, k := range f.keys {
		value := k.absent
		entry, ok := given[k.name]
		if ok {
			item.places[k.name] = r.at(entry.key)
			if value, ok = k.read(r, entry); !ok {
				value, broken[k.name] = k.absent, true
			}
		} else if k.required {
			r.mistakef(item.Place, "the %s%s has no %s", kind, ofRef(given), k.name)
		}
		if k.once || k.keep && given[k.name].key == nil {
			item.Keep = append(item.Keep, k.column)
		}
		values[k.name] = value
		item.Columns[columnOf(k)] = value
	}
	r.identify(item, values, packRef, broken)
	r.finish(item, values, given, broken)
	return item
}

// columnOf is where a value is kept until its item is finished.
func columnOf(k key) string {
	if k.column != "" {
		return k.column
	}
	return k.name
}

func ofRef(given map[string]field) string {
	if f, ok := given["ref"]; ok && f.value.Kind == yaml.ScalarNode && f.value.Value != "" {
		return " " + word(f.value)
	}
	return ""
}

// given lists the keys that a file gives, by their documented names. What is not
// known is warned of: files of other versions say more.
func (r *reader) given(f form, node *yaml.Node, kind Kind) map[string]field {
	given := map[string]field{}
	for _, entry := range r.pairs(node, map[*yaml.Node]bool{}) {
		if entry.key.Kind != yaml.ScalarNode {
			r.mistakef(r.at(entry.key), "a key must be a word")
			continue
		}
		name := entry.key.Value
		k, known := f.find(name)
		switch first, twice := given[k.name]; {
		case known && twice:
			r.twice(k.name, first.key, entry.key)
		case known && !isNull(entry.value):
			given[k.name] = field{k.name, entry.key, entry.value}
		case known, slices.Contains(f.silent, name), strings.HasPrefix(name, "_"), strings.HasPrefix(name, "x-"):
		default:
			r.warnUnknown(entry.key, f, kind)
		}
	}
	return given
}

func (r *reader) warnUnknown(at *yaml.Node, f form, kind Kind) {
	text := fmt.Sprintf("%s is not a known key of %s and has no effect", word(at), article(kind))
	if near := config.Nearest(at.Value, f.names()); near != "" {
		text += "; the nearest is " + near
	}
	r.warnings = append(r.warnings, Mistake{r.at(at), text})
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
			r.mistakef(at, "ref is empty")
		}
		item.Pack = packRef
		return
	}
	if item.Kind == KindPack {
		if !packName.MatchString(ref) {
			r.mistakef(at, "ref is %q; that of a pack begins with a letter and goes on with a-z, 0-9, _ and -, and is lower case", ref)
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
	case !packName.MatchString(first) || !itemName.MatchString(second):
		r.mistakef(at, "ref is %q; it must be the pack, a dot and a name in lower case, as in %s.%s", ref, orText(packRef, "deploy"), "rollout")
	case packRef != "" && first != packRef:
		r.mistakef(at, "ref is %s; in the pack %s it begins with %s.", ref, packRef, packRef)
	default:
		item.Ref, item.Pack = ref, first
	}
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
