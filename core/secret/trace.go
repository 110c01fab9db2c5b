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

// String returns the form of a source in a traced marker.
func (s Source) String() string {
	return s.Entity + ":" + strconv.FormatInt(s.ID, 10) + ":" + s.Path
}

// Kind returns the Sealed.Kind of a row derived from this one.
func (s Source) Kind() string {
	if s.Entity == OfResult {
		return FromResult
	}
	return FromParameter
}

// Ref returns its Sealed.Ref.
func (s Source) Ref() string { return strconv.FormatInt(s.ID, 10) + ":" + s.Path }

// sourceOf returns the source of a traced marker.
func sourceOf(marker map[string]any) (Source, bool) {
	text, _ := marker[from].(string)
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

// Trace adds the source of the secret to every marker of a value: the rows of the entity, under the marker's
// own path. It replaces any earlier source and changes texts that look like a marker, because the value comes
// from users or from an action's output. All values that templates can see pass through Trace, or come from
// templates. Trace does not change its argument.
func Trace(value any, entity string, id int64) any { return trace(value, entity, id, "") }

// Defuse removes markers from a foreign value: an object in the form of a marker becomes an ordinary object, and
// a text with one an ordinary text. It is for values of templates without stored secrets, such as the payload
// of events. Defuse does not change its argument.
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

// defuse changes a text so that it contains no marker.
func defuse(text string) string {
	return strings.ReplaceAll(text, expr.Secret, strings.Replace(expr.Secret, "_", "-", 1))
}

// Traced is a secret in the output of templates.
type Traced struct {
	Path  string // its JSON pointer
	Parts []Part // in order
}

// Part is a piece of a secret: a literal text, or another secret.
type Part struct {
	Text   string
	Source *Source // nil for a literal
	// JSON reports that the secret is inside JSON in a text, and must be written as JSON.
	JSON bool
}

// Whole returns the source of an unchanged secret.
func (t Traced) Whole() (Source, bool) {
	if len(t.Parts) == 1 && t.Parts[0].Source != nil && !t.Parts[0].JSON && t.Parts[0].Text == "" {
		return *t.Parts[0].Source, true
	}
	return Source{}, false
}

// Sources returns the rows of these secrets, each once.
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

// Check fails if a secret comes from a row that the caller may not read, as own decides. Authors of templates
// could write a marker too.
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

// ErrMangled reports that a function has changed the text of a marker, so that its secret is unknown.
var ErrMangled = errors.New("a secret was changed by a function: pass it on as it is, or within a text")

// ErrUntraced reports a marker without a source.
var ErrUntraced = errors.New("the origin of the secret in this place is unknown")

// Collect replaces all traced markers, and the texts that contain any, by plain markers, and returns them by
// path.
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
		parts, err := split(v)
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

// split splits a text at its markers.
func split(text string) ([]Part, error) {
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

// Assemble builds the value of a traced secret from its rows. An unchanged secret keeps its encrypted value and
// needs no key.
func (k Keyring) Assemble(t Traced, rows map[Source]Sealed) (Sealed, error) {
	built := Sealed{Path: t.Path}
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
		built.Kind, built.Ref = cmp.Or(built.Kind, part.Source.Kind()), cmp.Or(built.Ref, part.Source.Ref())
		if _, whole := t.Whole(); whole {
			built.Value, built.KeyHash = row.Value, row.KeyHash
			return built, nil
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
	if built.Value, err = k.Seal(text.String()); err != nil {
		return Sealed{}, fmt.Errorf("%s: seal a secret: %w", place(t.Path), err)
	}
	return built, nil
}

// words describes an entity for errors.
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

// Misplaced returns the paths of secrets that the receiver's schema does not mark as secret, and must not get.
// allowed are JSON pointers.
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
