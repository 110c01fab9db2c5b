package workflow

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// forPeople are keys of the upper level for people and other programs.
var forPeople = []string{"name", "examples", "notes", "documentation", "metadata"}

// harmless are keys without effect in published definitions. None is a misspelt known key.
var harmless = append([]string{"delay", "description", "label", "comment"}, forPeople...)

// keyRule decides about an unknown key that resembles no known one.
type keyRule bool

const (
	warnUnknown   keyRule = false // a warning, since other versions may have the key
	refuseUnknown keyRule = true  // a mistake, since without the meant key the rest has another meaning
)

// mapping returns the keys of a mapping that the tags of a struct name. It reports other keys, except those for people
// and other programs. Meant are the known keys that misspelt ones resemble.
func (r *reader) mapping(node *yaml.Node, form any, where string, rule keyRule) (given yamldoc.Fields,
	meant map[string]bool,
) {
	keys := yamldoc.KeysOf(form)
	meant = map[string]bool{}
	var other []yamldoc.Field // other names of keys
	given = r.Mapping(node, keys, func(f yamldoc.Field) {
		switch {
		case f.Name == permissionSet && slices.Contains(yamldoc.Names(keys), permissionSet+"s"):
			other = append(other, f)
		case strings.HasPrefix(f.Name, "_"), strings.HasPrefix(f.Name, "x-"):
		case where == "" && slices.Contains(forPeople, f.Name):
		default:
			r.unknown(f.Key, yamldoc.Names(keys), where, rule, meant)
		}
	})
	for _, f := range other {
		if first := given[permissionSet+"s"]; first.Given() {
			if first.Key.Line > f.Key.Line {
				first, f = f, first
			}
			r.Mistakef(r.At(f.Key), "%s and %s in line %d are the same: keep one", f.Name, first.Name, first.Key.Line)
			continue
		}
		given[permissionSet+"s"] = f
	}
	return given, meant
}

// permissionSet is the other name of permission_set_refs.
const permissionSet = "permission_set_ref"

// otherWords are keys of other systems that resemble no key of ours.
var otherWords = map[string]string{"timeout_seconds": "timeout", "parameters": "input", "params": "input"}

// maxNamed bounds the known keys in a mistake.
const maxNamed = 8

// unknown reports an unknown key. One that resembles a known key is a mistake: its author meant that one. In a stored
// definition it is ignored, as it always was.
func (r *reader) unknown(key *yaml.Node, known []string, where string, rule keyRule, meant map[string]bool) {
	near := phrase.Nearest(key.Value, known)
	if other := otherWords[key.Value]; slices.Contains(known, other) {
		near = other
	}
	if near != "" {
		meant[near] = true
	}
	switch {
	case r.Stored:
	case slices.Contains(harmless, key.Value):
		r.Warnf(r.At(key), "%s is not a known key%s and is ignored", yamldoc.KeyName(key), where)
	case near != "":
		r.Mistakef(r.At(key), "%s is not a known key%s; the nearest is %s", yamldoc.KeyName(key), where, near)
	case rule == refuseUnknown:
		text := ""
		if len(known) <= maxNamed {
			shown := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == chartKey })
			text = "; known are " + strings.Join(shown, ", ")
		}
		r.Mistakef(r.At(key), "%s is not a known key%s%s", yamldoc.KeyName(key), where, text)
	default:
		r.Warnf(r.At(key), "%s is not a known key%s and is ignored", yamldoc.KeyName(key), where)
	}
}

// variable checks the name of a variable.
func (r *reader) variable(key *yaml.Node) bool {
	plain := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '-' }
	if key.Kind != yaml.ScalarNode || key.Value == "" ||
		strings.ContainsFunc(key.Value, func(c rune) bool { return !plain(c) }) || !utf8.ValidString(key.Value) {
		r.Mistakef(r.At(key), "%s is not a name for a variable; it has letters, digits, _ and -", yamldoc.KeyName(key))
		return false
	}
	r.variables[key.Value] = true
	return true
}

// template reads a value with templates; nil if it is not given.
func (r *reader) template(f yamldoc.Field) *Value {
	if !f.Given() {
		return nil
	}
	before := len(r.Mistakes)
	r.OnText = r.read
	raw := r.Value(f.Value)
	r.OnText = nil
	if len(r.Mistakes) > before {
		return nil
	}
	value, err := NewValue(raw) // read has reported the errors of its texts at their places
	if value == nil {
		r.Mistakef(r.At(f.Value), "%s: %v", f.Key.Value, err)
	}
	return value
}

func (r *reader) condition(f yamldoc.Field) *Condition {
	source, ok := r.Text(f)
	if !ok {
		return nil
	}
	condition, err := NewCondition(source)
	if e := (*expr.Error)(nil); errors.As(err, &e) {
		r.errorf(r.within(f.Value, e.Offset), "%s: %s", f.Key.Value, e.Text)
	} else if err != nil {
		r.errorf(r.At(f.Value), "%s: %v", f.Key.Value, err)
	} else {
		r.use(condition.expression, r.At(f.Value))
	}
	return condition
}
