package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// path matches a template of a rule. Any other text stays as it is, for example {{}}.
var path = regexp.MustCompile(`\{\{\s*([^}]+?)\s*\}\}`)

// RenderPaths evaluates texts of the smaller language of rules, in which templates are paths of fields and indexes
// joined by points. A path without a value is null, and empty within a text. Values are never evaluated as templates.
// An unclosed {{ is an error, because its author meant a template.
func RenderPaths(value any, scope map[string]any) (any, error) {
	size := 0
	return render(value, "", 0, func(_, text string) (any, error) { return paths(text, scope, &size) })
}

func paths(source string, scope map[string]any, size *int) (any, error) {
	found := path.FindAllStringSubmatchIndex(source, -1)
	if len(found) == 1 && found[0][0] == 0 && found[0][1] == len(source) {
		return follow(scope, strings.TrimSpace(source[found[0][2]:found[0][3]])), nil
	}
	var text strings.Builder
	at := 0
	for _, match := range found {
		text.WriteString(source[at:match[0]])
		text.WriteString(Text(follow(scope, strings.TrimSpace(source[match[2]:match[3]]))))
		at = match[1]
		if *size+text.Len() > maxSize {
			return nil, &Error{
				Source: source, Offset: match[0],
				Text: fmt.Sprintf("the texts become longer than %d bytes", maxSize),
			}
		}
	}
	if open := strings.LastIndex(source, opening); open >= at && !strings.Contains(source[open:], closing) {
		return nil, &Error{Source: source, Offset: open, Text: "the template is not closed by }}"}
	}
	text.WriteString(source[at:])
	*size += text.Len()
	return text.String(), nil
}

// FoundPath is a path in a text of a value. At is the place of the text.
type FoundPath struct{ At, Path string }

// Paths lists the paths in a value that RenderPaths evaluates.
func Paths(value any) (all []FoundPath) {
	_, _ = render(value, "", 0, func(at, text string) (any, error) { // what is nested too deeply has none
		for _, match := range path.FindAllStringSubmatch(text, -1) {
			all = append(all, FoundPath{At: at, Path: strings.TrimSpace(match[1])})
		}
		return nil, nil
	})
	return all
}

// Leads reports whether a path has a value, which may be null.
func Leads(scope map[string]any, path string) bool {
	_, there := walk(scope, path)
	return there
}

// follow returns the value of a path, or nil.
func follow(scope map[string]any, path string) any {
	value, _ := walk(scope, path)
	return value
}

func walk(scope map[string]any, path string) (value any, there bool) {
	value = scope
	for segment := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			if value, there = v[segment]; !there {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}
