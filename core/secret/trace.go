package secret

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// Source names a row of execution_secret_value.
type Source struct {
	Entity string // OfConfig, OfResult or OfEnforcement
	ID     int64
	Path   string // JSON pointer
}

// String is how a traced marker names its source.
func (s Source) String() string {
	return s.Entity + ":" + strconv.FormatInt(s.ID, 10) + ":" + s.Path
}

// Kind is how a row names where it came from, when it was made of this one.
func (s Source) Kind() string {
	if s.Entity == OfResult {
		return FromResult
	}
	return FromParameter
}

// Ref is the same, closer.
func (s Source) Ref() string { return strconv.FormatInt(s.ID, 10) + ":" + s.Path }

func parseSource(text string) (Source, bool) {
	entity, rest, _ := strings.Cut(text, ":")
	id, path, ok := strings.Cut(rest, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || !slices.Contains([]string{OfConfig, OfResult, OfEnforcement}, entity) {
		return Source{}, false
	}
	return Source{entity, n, path}, true
}

// from is the key of a traced marker that names its source.
const from = "from"

// Trace adds the origin of the secret to every marker of a value: the rows of the entity, under the
// marker's own path. It replaces any earlier origin: the value comes from users or from an action's
// output. For the same reason it changes texts that look like a marker. All values that templates
// can see pass through Trace, or come from templates. Trace does not change its argument.
func Trace(value any, entity string, id int64) any { return trace(value, entity, id, "") }

// Defuse removes markers from a foreign value: an object in the form of a marker becomes an
// ordinary object, and a text that contains one an ordinary text. It serves values that templates
// see and that have no stored secrets, such as the payload of events. Defuse does not change its
// argument.
func Defuse(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[defuse(key)] = Defuse(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Defuse(item)
		}
		return out
	case string:
		return defuse(v)
	default:
		return value
	}
}

func trace(value any, entity string, id int64, path string) any {
	switch v := value.(type) {
	case map[string]any:
		if IsMarker(v) {
			traced := Marker()
			traced[from] = Source{entity, id, path}.String()
			return traced
		}
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[defuse(key)] = trace(item, entity, id, Join(path, key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = trace(item, entity, id, Join(path, strconv.Itoa(i)))
		}
		return out
	case string:
		return defuse(v)
	default:
		return value
	}
}

// defuse keeps a text from being taken for a marker.
func defuse(text string) string {
	return strings.ReplaceAll(text, expr.Secret, strings.Replace(expr.Secret, "_", "-", 1))
}

func sourceOf(marker map[string]any) (Source, bool) {
	text, _ := marker[from].(string)
	return parseSource(text)
}

// Traced is a secret that templates have led somewhere.
type Traced struct {
	Path  string // JSON pointer of where it is now
	Parts []Part // what it is made of, in order
}

// Part is a piece of a secret: a literal text, or another secret.
type Part struct {
	Text   string
	Source *Source // nil for a literal
	// JSON says that the secret stands inside of JSON within a text, and is to be
	// written as JSON there.
	JSON bool
}

// Whole is the source of a secret that was passed on as it is.
func (t Traced) Whole() (Source, bool) {
	if len(t.Parts) == 1 && t.Parts[0].Source != nil && !t.Parts[0].JSON && t.Parts[0].Text == "" {
		return *t.Parts[0].Source, true
	}
	return Source{}, false
}

// Sources lists the rows that must be read to make these secrets, each once.
func Sources(traced []Traced) []Source {
	var all []Source
	for _, one := range traced {
		for _, part := range one.Parts {
			if part.Source != nil && !slices.Contains(all, *part.Source) {
				all = append(all, *part.Source)
			}
		}
	}
	return all
}

// Check fails if a secret is to come from a row that is not the caller's to read, which
// own tells. Templates are written by people, who could write a marker too.
func Check(traced []Traced, own func(Source) bool) error {
	for _, one := range traced {
		for _, part := range one.Parts {
			if part.Source != nil && !own(*part.Source) {
				return fmt.Errorf("%s: the secret of %s %d does not belong here", place(one.Path),
					words(part.Source.Entity), part.Source.ID)
			}
		}
	}
	return nil
}

// ErrMangled reports that a function has changed the text of a marker, so that its secret is
// unknown.
var ErrMangled = errors.New("a secret was changed by a function: pass it on as it is, or within a text")

// ErrUntraced says that a marker does not say where its secret is.
var ErrUntraced = errors.New("it is not known which secret stands here")

// Collect puts plain markers in place of all traced ones, and of the texts that
// have such in them, and lists them by path.
func Collect(value any) (public any, found []Traced, err error) {
	public, err = collect(value, "", &found)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(found, func(a, b Traced) int { return cmp.Compare(a.Path, b.Path) })
	return public, found, nil
}

func collect(value any, path string, found *[]Traced) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if IsMarker(v) {
			source, ok := sourceOf(v)
			if !ok {
				return nil, fmt.Errorf("%s: %w", place(path), ErrUntraced)
			}
			*found = append(*found, Traced{path, []Part{{Source: &source}}})
			return Marker(), nil
		}
		out := make(map[string]any, len(v))
		for key, item := range v {
			if strings.Contains(key, expr.Secret) {
				return nil, fmt.Errorf("%s: a secret cannot be the name of a field", place(path))
			}
			var err error
			if out[key], err = collect(item, Join(path, key), found); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = collect(item, Join(path, strconv.Itoa(i)), found); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		if !strings.Contains(v, expr.Secret) {
			return v, nil
		}
		parts, err := take(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(path), err)
		}
		*found = append(*found, Traced{path, parts})
		return Marker(), nil
	default:
		return value, nil
	}
}

func place(path string) string {
	if path == "" {
		return "the value"
	}
	return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
}

// take splits a text at its markers.
func take(text string) ([]Part, error) {
	const begin = `{"` + expr.Secret + `":`
	var parts []Part
	for {
		at := strings.Index(text, begin)
		literal := text
		if at >= 0 {
			literal = text[:at]
		}
		if strings.Contains(literal, expr.Secret) {
			return nil, ErrMangled
		}
		if literal != "" {
			parts = append(parts, Part{Text: literal})
		}
		if at < 0 {
			return parts, nil
		}
		decoder := json.NewDecoder(bytes.NewReader([]byte(text[at:])))
		var marker map[string]any
		if decoder.Decode(&marker) != nil || !IsMarker(marker) {
			return nil, ErrMangled
		}
		source, ok := sourceOf(marker)
		if !ok {
			return nil, ErrUntraced
		}
		parts = append(parts, Part{Source: &source, JSON: marker["text"] != true})
		text = text[at+int(decoder.InputOffset()):]
	}
}

// Assemble makes the value of a traced secret from the rows that it is made of. One
// that was passed on as it is keeps its encrypted value and needs no key.
func (k Keyring) Assemble(t Traced, rows map[Source]Sealed) (Sealed, error) {
	made := Sealed{Path: t.Path}
	var text strings.Builder
	for _, part := range t.Parts {
		if part.Source == nil {
			text.WriteString(part.Text)
			continue
		}
		row, ok := rows[*part.Source]
		if !ok {
			return Sealed{}, fmt.Errorf("%s: the secret of %s %d is gone", place(t.Path), words(part.Source.Entity),
				part.Source.ID)
		}
		made.Kind, made.Ref = cmp.Or(made.Kind, part.Source.Kind()), cmp.Or(made.Ref, part.Source.Ref())
		if _, whole := t.Whole(); whole {
			made.Value, made.KeyHash = row.Value, row.KeyHash
			return made, nil
		}
		value, err := k.Open(row)
		if err != nil {
			return Sealed{}, fmt.Errorf("%s: open the secret of %s %d: %w", place(t.Path), words(part.Source.Entity),
				part.Source.ID, err)
		}
		if part.JSON {
			raw, err := compact(value)
			if err != nil {
				return Sealed{}, err
			}
			text.Write(raw)
		} else {
			text.WriteString(expr.Text(value))
		}
	}
	var err error
	if made.Value, err = k.Seal(text.String()); err != nil {
		return Sealed{}, fmt.Errorf("%s: seal a secret: %w", place(t.Path), err)
	}
	return made, nil
}

// words names an entity for people.
func words(entity string) string {
	switch entity {
	case OfResult:
		return "the result of execution"
	case OfEnforcement:
		return "the parameters of enforcement"
	default:
		return "the parameters of execution"
	}
}

// Misplaced lists, in words, the paths of secrets that the receiver's schema does
// not mark as secret: they must not go there. allowed are JSON pointers.
func Misplaced(found []Traced, allowed []string) []string {
	var wrong []string
	for _, one := range found {
		if !slices.ContainsFunc(allowed, func(path string) bool {
			return one.Path == path || strings.HasPrefix(one.Path, path+"/")
		}) {
			wrong = append(wrong, place(one.Path))
		}
	}
	return wrong
}
