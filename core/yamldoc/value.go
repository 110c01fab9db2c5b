package yamldoc

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
)

// MaxValues bounds the values of a file with its aliases expanded.
const MaxValues = 200_000

// afford counts values and reports once that there are too many.
func (r *Reader) afford(node *yaml.Node, count int) bool {
	before, most := r.values, cmp.Or(r.most, MaxValues)
	if r.values += count; r.values <= most {
		return true
	}
	if before <= most {
		what := r.What
		if what == "" {
			what = "file"
		}
		r.Mistakef(r.At(node), "there are more than %d values in the %s", most, what)
	}
	return false
}

// Value is a node as JSON: nil, bool, int64, json.Number for any other number that JSON can write, float64 for one such
// as .5, string, []any or map[string]any. A date is the text of the file.
func (r *Reader) Value(node *yaml.Node) any { return r.value(node, 0) }

func (r *Reader) value(node *yaml.Node, depth int) any {
	node = Follow(node)
	if !r.afford(node, 1) {
		return nil
	}
	most := r.Depth
	if most == 0 {
		most = jsonvalue.Depth
	}
	if depth >= most && node.Kind != yaml.ScalarNode {
		r.Mistakef(r.At(node), "nested %d levels deep; at most %d", depth+1, most)
		return nil
	}
	switch node.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			list[i] = r.value(item, depth+1)
		}
		return list
	case yaml.MappingNode:
		object := map[string]any{}
		for _, f := range r.Pairs(node) {
			if f.Key.Kind != yaml.ScalarNode || strings.ContainsRune(f.Name, 0) {
				r.Mistakef(r.At(f.Key), "a key must be a word")
				continue
			}
			if _, twice := object[f.Name]; twice {
				r.Mistakef(r.At(f.Key), "%s is given twice", KeyName(f.Key))
			}
			object[f.Name] = r.value(f.Value, depth+1)
		}
		return object
	default:
		return r.scalar(node)
	}
}

func (r *Reader) scalar(node *yaml.Node) any {
	tag := node.ShortTag()
	if tag == "!!float" || tag == "!!str" && node.Style == 0 { // YAML reads 1e400 as a text
		if number, ok := asNumber(node.Value); ok {
			return number
		}
	}
	switch tag {
	case "!!null":
		return nil
	case "!!bool":
		var yes bool
		if node.Decode(&yes) == nil {
			return yes
		}
	case "!!int":
		var number int64
		if node.Decode(&number) == nil {
			return number
		}
		if _, err := json.Marshal(json.Number(node.Value)); err == nil {
			return json.Number(node.Value)
		}
	case "!!float":
		var number float64
		if node.Decode(&number) == nil && (r.infinite || !math.IsNaN(number) && !math.IsInf(number, 0)) {
			return number
		}
		r.Mistakef(r.At(node), "%s is no number that can be stored", Show(node))
		return nil
	}
	if strings.ContainsRune(node.Value, 0) {
		r.Mistakef(r.At(node), "this holds a character that cannot be stored")
		return ""
	}
	if r.OnText != nil {
		r.OnText(node)
	}
	return node.Value
}

// asNumber is a number with the digits of the file.
func asNumber(text string) (json.Number, bool) {
	text = strings.TrimPrefix(text, "+")
	if digits, negative := strings.CutPrefix(text, "-"); strings.HasPrefix(digits, ".") {
		text = "0" + digits
		if negative {
			text = "-" + text
		}
	}
	return json.Number(text), strings.ContainsAny(text[:min(1, len(text))], "-0123456789") && json.Valid([]byte(text))
}

// Text reads a text. Numbers and the like are read as written, unless the document is strict.
func (r *Reader) Text(f Field) (string, bool) {
	strictly := f.Value.ShortTag() == "!!str" && strings.TrimSpace(f.Value.Value) != ""
	switch {
	case f.Value.Kind != yaml.ScalarNode, r.Strict && !strictly:
		r.Mistakef(r.At(f.Value), "%s must be a text", f.Key.Value)
	case strings.ContainsRune(f.Value.Value, 0):
		r.Mistakef(r.At(f.Value), "%s holds a character that cannot be stored", f.Key.Value)
	default:
		return f.Value.Value, true
	}
	return "", false
}

// Length checks the number of characters of a text.
func (r *Reader) Length(f Field, least, most int) bool {
	n := utf8.RuneCountInString(f.Value.Value)
	if n < least || n > most {
		r.Mistakef(r.At(f.Value), "%s has %d characters; it must have %d to %d", f.Key.Value, n, least, most)
	}
	return n >= least && n <= most
}

// Texts reads a list of texts; a strict document may give a single one. It returns the usable ones.
func (r *Reader) Texts(f Field) ([]string, bool) {
	sound, list, items := true, []string{}, f.Value.Content
	switch {
	case r.Strict && f.Value.Kind == yaml.ScalarNode:
		items = []*yaml.Node{f.Value}
	case f.Value.Kind != yaml.SequenceNode && r.Strict:
		r.Mistakef(r.At(f.Value), "%s must be a text or a list of texts", f.Key.Value)
		return nil, false
	case f.Value.Kind != yaml.SequenceNode:
		r.Mistakef(r.At(f.Value), "%s must be a list of texts", f.Key.Value)
		return nil, false
	case r.Strict && len(items) == 0:
		r.Mistakef(r.At(f.Value), "%s is an empty list", f.Key.Value)
		return nil, false
	}
	for _, item := range items {
		item = Follow(item)
		if IsNull(item) && !r.Stored && !r.Strict {
			r.Mistakef(r.At(item), "%s must be a list of texts, and one is empty", f.Key.Value)
			sound = false
		} else if text, ok := r.Text(Field{Name: f.Name, Key: f.Key, Value: item}); ok {
			list = append(list, text)
		} else {
			sound = false
		}
	}
	return list, sound
}

// Bool reads true or false.
func (r *Reader) Bool(f Field) (yes, ok bool) {
	switch {
	case f.Value.Kind == yaml.ScalarNode && f.Value.ShortTag() == "!!bool" && f.Value.Decode(&yes) == nil:
		return yes, true
	case r.Strict:
		r.Mistakef(r.At(f.Value), "%s must be true or false", f.Key.Value)
	default:
		r.Mistakef(r.At(f.Value), "%s is %s; it must be true or false", f.Key.Value, Show(f.Value))
	}
	return false, false
}

// Whole reads a whole number within bounds.
func (r *Reader) Whole(f Field, least, most int64) (int64, bool) {
	if f.Value.Kind != yaml.ScalarNode || f.Value.ShortTag() != "!!int" {
		r.Mistakef(r.At(f.Value), "%s is %s; it must be a whole number", f.Key.Value, Show(f.Value))
		return 0, false
	}
	var number int64
	if err := f.Value.Decode(&number); err != nil {
		number = math.MaxInt64 // the tag says it is an integer, so it is too large
	}
	switch {
	case number < least && (number != 0 || !r.Stored):
		r.Mistakef(r.At(f.Value), "%s is %s; it must be at least %d", f.Key.Value, Show(f.Value), least)
	case number > most:
		r.Mistakef(r.At(f.Value), "%s is %s; it can be at most %d", f.Key.Value, Show(f.Value), most)
	default:
		return number, true
	}
	return 0, false
}

// Word reads one of a few words.
func (r *Reader) Word(f Field, allowed ...string) (string, bool) {
	for _, word := range allowed {
		if f.Value.Kind == yaml.ScalarNode && f.Value.Value == word {
			return word, true
		}
	}
	last := len(allowed) - 1
	r.Mistakef(r.At(f.Value), "%s is %s; it must be %s or %s",
		f.Key.Value, Show(f.Value), strings.Join(allowed[:last], ", "), allowed[last])
	return "", false
}

// Units reads a duration in whole units: seconds, or a form such as 1m30s.
func (r *Reader) Units(f Field, unit time.Duration) (int32, bool) {
	seconds, ok := Seconds(f.Value)
	units := seconds / unit.Seconds()
	switch {
	case !ok:
		r.Mistakef(r.At(f.Value), "%s is %s; it must be a number of seconds or a form like 1m30s", f.Key.Value,
			Show(f.Value))
	case units > math.MaxInt32:
		r.Mistakef(r.At(f.Value), "%s is %s; it can be at most %d seconds", f.Key.Value, Show(f.Value),
			int64(math.MaxInt32*unit.Seconds()))
	case units < 1:
		r.Mistakef(r.At(f.Value), "%s is %s; it must be at least %s", f.Key.Value, Show(f.Value), unit)
	case math.Abs(units-math.Round(units)) > 1e-6:
		r.Mistakef(r.At(f.Value), "%s is %s; it must be a multiple of %s", f.Key.Value, Show(f.Value), unit)
	default:
		return int32(math.Round(units)), true
	}
	return 0, false
}

// Seconds reads a plain number or a duration such as 1m30s.
func Seconds(node *yaml.Node) (float64, bool) {
	if node.Kind != yaml.ScalarNode {
		return 0, false
	}
	switch node.ShortTag() {
	case "!!int", "!!float":
		var number float64
		err := node.Decode(&number)
		return number, err == nil && !math.IsNaN(number)
	case "!!str":
		duration, err := phrase.ParseSpan(node.Value)
		return duration.Seconds(), err == nil
	}
	return 0, false
}

// Object reads a mapping of values.
func (r *Reader) Object(f Field) (map[string]any, bool) {
	if f.Value.Kind != yaml.MappingNode {
		r.Mistakef(r.At(f.Value), "%s is %s; it must be a mapping", f.Key.Value, Show(f.Value))
		return nil, false
	}
	before := len(r.Mistakes)
	object, _ := r.Value(f.Value).(map[string]any)
	return object, len(r.Mistakes) == before
}
