package workflow

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/expr"
)

// field is one key of a mapping.
type field struct {
	name  string // the known key, whatever the file calls it
	key   *yaml.Node
	value *yaml.Node
}

// aliases are keys with another name.
var aliases = map[string]string{"permission_set_ref": "permission_set_refs"}

// forPeople are keys of the upper level that say something to people and other programs.
var forPeople = []string{"name", "examples", "notes", "documentation", "metadata"}

// harmless are keys below the upper level that published definitions have and that mean
// nothing, as do those for people. None is a known key that was misspelt.
var harmless = append([]string{"delay", "description", "label", "comment"}, forPeople...)

// passed reports whether a key is no business of ours.
func passed(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, "x-") }

// keyRule says what an unknown key of a mapping is that resembles no known one.
type keyRule bool

const (
	warnUnknown   keyRule = false // a warning: files of other versions say more
	refuseUnknown keyRule = true  // a mistake: without the key that was meant, the rest has another meaning
)

// fields lists the keys of a mapping that are known, null ones too, and reports the
// others, except those that are for people and other programs.
func (r *reader) fields(node *yaml.Node, known []string, where string, rule keyRule) []field {
	var list []field
	r.meant = map[string]bool{}
	seen := map[string]*yaml.Node{}
	for _, f := range r.pairs(node, map[*yaml.Node]bool{}) {
		name := f.key.Value
		if other := aliases[name]; other != "" && slices.Contains(known, other) {
			name = other
		}
		switch {
		case f.key.Kind != yaml.ScalarNode:
			r.mistakef(r.at(f.key), "a key must be a word")
			continue
		case slices.Contains(known, name):
		case passed(name), where == "" && slices.Contains(forPeople, name):
			continue
		default:
			r.unknown(f.key, known, where, rule)
			continue
		}
		if first := seen[name]; first != nil {
			r.twice(first, f.key)
			continue
		}
		seen[name] = f.key
		list = append(list, field{name, f.key, follow(f.value)})
	}
	return list
}

// otherWords are words for keys that many systems use and that resemble no key of ours.
var otherWords = map[string]string{"timeout_seconds": "timeout", "parameters": "input", "params": "input"}

// maxNamed bounds how many known keys a mistake lists.
const maxNamed = 8

func (r *reader) twice(first, second *yaml.Node) {
	if first.Value == second.Value {
		r.mistakef(r.at(second), "%s is given twice, also in line %d", second.Value, first.Line)
		return
	}
	r.mistakef(r.at(second), "%s and %s in line %d are the same: keep one", second.Value, first.Value, first.Line)
}

// unknown reports a key that is not known. One that resembles a known key is a mistake:
// the author meant that one. Stored definitions have been running with theirs.
func (r *reader) unknown(key *yaml.Node, known []string, where string, rule keyRule) {
	near := config.Nearest(key.Value, known)
	if other := otherWords[key.Value]; slices.Contains(known, other) {
		near = other
	}
	if near != "" {
		r.meant[near] = true
	}
	switch {
	case r.stored:
	case slices.Contains(harmless, key.Value):
		r.warnf(r.at(key), "%s is not a known key%s and is ignored", word(key), where)
	case near != "":
		r.mistakef(r.at(key), "%s is not a known key%s; the nearest is %s", word(key), where, near)
	case rule == refuseUnknown:
		text := ""
		if len(known) <= maxNamed {
			shown := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == chartKey })
			text = "; known are " + strings.Join(shown, ", ")
		}
		r.mistakef(r.at(key), "%s is not a known key%s%s", word(key), where, text)
	default:
		r.warnf(r.at(key), "%s is not a known key%s and is ignored", word(key), where)
	}
}

// pairs lists keys and values of a mapping, with those it merges by << that it does
// not have itself. Mappings that have been merged already have nothing to add, which
// also ends those that merge themselves.
func (r *reader) pairs(node *yaml.Node, done map[*yaml.Node]bool) []field {
	done[node] = true
	if !r.afford(node, len(node.Content)/2) {
		return nil
	}
	var own, merged []field
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := follow(node.Content[i]), follow(node.Content[i+1])
		if key.Value != "<<" || key.Kind != yaml.ScalarNode || r.stored {
			own = append(own, field{name: key.Value, key: key, value: value})
			continue
		}
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, source := range sources {
			switch source = follow(source); {
			case source.Kind != yaml.MappingNode:
				r.mistakef(r.at(key), "<< takes the keys of a mapping, and this is none")
			case !done[source]:
				merged = append(merged, r.pairs(source, done)...)
			}
		}
	}
	had := map[string]bool{}
	for _, f := range own {
		had[f.key.Value] = true
	}
	for _, f := range merged { // of several mappings the first wins
		if !had[f.key.Value] {
			had[f.key.Value] = true
			own = append(own, f)
		}
	}
	return own
}

// maxNodes bounds how many values a definition has once its aliases are written out.
const maxNodes = 200_000

// afford counts values and says once that there are too many.
func (r *reader) afford(node *yaml.Node, count int) bool {
	before := r.nodes
	if r.nodes += count; r.nodes <= maxNodes {
		return true
	}
	if before <= maxNodes {
		r.mistakef(r.at(node), "there are more than %d values in the workflow", maxNodes)
	}
	return false
}

// value is what a node stands for: nil, bool, int64, float64, string, []any or
// map[string]any.
func (r *reader) value(node *yaml.Node, depth int) any {
	node = follow(node)
	if !r.afford(node, 1) {
		return nil
	}
	if depth >= maxDepth {
		r.mistakef(r.at(node), "nested deeper than %d", maxDepth)
		return nil
	}
	switch node.Kind {
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			list = append(list, r.value(item, depth+1))
		}
		return list
	case yaml.MappingNode:
		object := map[string]any{}
		for _, f := range r.pairs(node, map[*yaml.Node]bool{}) {
			if _, twice := object[f.key.Value]; twice {
				r.mistakef(r.at(f.key), "%s is given twice", word(f.key))
			}
			object[f.key.Value] = r.value(f.value, depth+1)
		}
		return object
	default:
		return r.scalar(node)
	}
}

func (r *reader) scalar(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if node.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var n int64
		if node.Decode(&n) == nil {
			return n
		}
		if f, err := strconv.ParseFloat(node.Value, 64); err == nil {
			return f
		}
	case "!!float":
		var f float64
		if node.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
	if strings.ContainsRune(node.Value, 0) || !utf8.ValidString(node.Value) {
		r.mistakef(r.at(node), "this text holds a character that cannot be stored")
		return ""
	}
	if r.templates && strings.Contains(node.Value, "{{") {
		r.read(node)
	}
	return node.Value
}

func (r *reader) text(f field, to *string) bool {
	if f.value.Kind != yaml.ScalarNode {
		r.mistakef(r.at(f.value), "%s must be a text", f.key.Value)
		return false
	}
	if strings.ContainsRune(f.value.Value, 0) || !utf8.ValidString(f.value.Value) {
		r.mistakef(r.at(f.value), "%s holds a character that cannot be stored", f.key.Value)
		return false
	}
	*to = f.value.Value
	return true
}

// short reads a text of a bounded length.
func (r *reader) short(f field, to *string, least, most int) bool {
	var text string
	if !r.text(f, &text) {
		return false
	}
	if n := utf8.RuneCountInString(text); n < least || n > most {
		r.mistakef(r.at(f.value), "%s has %d characters; it must have %d to %d", f.key.Value, n, least, most)
		return false
	}
	*to = text
	return true
}

func (r *reader) texts(f field, to *[]string) {
	if f.value.Kind != yaml.SequenceNode {
		r.mistakef(r.at(f.value), "%s must be a list of texts", f.key.Value)
		return
	}
	for _, item := range f.value.Content {
		var text string
		if r.text(field{f.name, f.key, follow(item)}, &text) {
			*to = append(*to, text)
		}
	}
}

func (r *reader) object(f field, to *map[string]any) {
	if f.value.Kind != yaml.MappingNode {
		r.mistakef(r.at(f.value), "%s must be a mapping", f.key.Value)
		return
	}
	*to, _ = r.value(f.value, 0).(map[string]any)
}

// variable checks the name of a variable.
func (r *reader) variable(key *yaml.Node) bool {
	plain := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '-' }
	if key.Kind != yaml.ScalarNode || key.Value == "" ||
		strings.ContainsFunc(key.Value, func(c rune) bool { return !plain(c) }) || !utf8.ValidString(key.Value) {
		r.mistakef(r.at(key), "%s is not a name for a variable; it has letters, digits, _ and -", word(key))
		return false
	}
	r.variables[key.Value] = true
	return true
}

// whole reads a whole number within bounds.
func (r *reader) whole(f field, to *int, least, most int) {
	var n int64
	switch {
	case f.value.Kind != yaml.ScalarNode || f.value.ShortTag() != "!!int" || f.value.Decode(&n) != nil:
		r.mistakef(r.at(f.value), "%s is %s; it must be a whole number", f.key.Value, show(f.value))
	case n < int64(least):
		r.mistakef(r.at(f.value), "%s is %d; it must be at least %d", f.key.Value, n, least)
	case n > int64(most):
		r.mistakef(r.at(f.value), "%s is %d; it can be at most %d", f.key.Value, n, most)
	default:
		*to = int(n)
	}
}

// oneOf reads one of a few words.
func oneOf[T ~string](r *reader, f field, to *T, allowed ...T) bool {
	texts := make([]string, len(allowed))
	for i, value := range allowed {
		if f.value.Kind == yaml.ScalarNode && f.value.Value == string(value) {
			*to = value
			return true
		}
		texts[i] = string(value)
	}
	last := len(texts) - 1
	r.mistakef(r.at(f.value), "%s is %s; it must be %s or %s",
		f.key.Value, show(f.value), strings.Join(texts[:last], ", "), texts[last])
	return false
}

// template reads a value with templates.
func (r *reader) template(f field) *Value {
	before := len(r.mistakes)
	r.templates = true
	raw := r.value(f.value, 0)
	r.templates = false
	if len(r.mistakes) > before {
		return nil
	}
	value, err := NewValue(raw) // errors of its texts were told where they stand
	if value == nil {
		r.mistakef(r.at(f.value), "%s: %v", f.key.Value, err)
	}
	return value
}

// condition reads a condition.
func (r *reader) condition(f field) *Condition {
	var source string
	if !r.text(f, &source) {
		return nil
	}
	condition, err := NewCondition(source)
	if e := (*expr.Error)(nil); errors.As(err, &e) {
		r.errorf(r.within(f.value, e.Offset), "%s: %s", f.key.Value, e.Text)
	} else if err != nil {
		r.errorf(r.at(f.value), "%s: %v", f.key.Value, err)
	} else {
		r.use(condition.expression, r.at(f.value))
	}
	return condition
}

// follow is the node that an alias stands for. What an alias names is never an alias
// itself.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == 0 || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) }

// word shows a key in a text of one line.
func word(key *yaml.Node) string {
	if key.Kind == yaml.ScalarNode && !strings.ContainsFunc(key.Value, unprintable) && key.Value != "" && len(key.Value) <= maxShown {
		return key.Value
	}
	return show(key)
}

// maxShown bounds how much of a value a mistake repeats.
const maxShown = 40

// show is a value as it was written, short and on one line.
func show(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
	}
	tag := node.ShortTag()
	if tag == "!!null" {
		return "null"
	}
	text := shorten(node.Value)
	if tag == "!!int" || tag == "!!float" || tag == "!!bool" {
		return text
	}
	return strconv.Quote(text)
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}
