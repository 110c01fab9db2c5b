package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// path is what stands in a template of a rule. What does not look like this is text
// and stays so, {{}} for instance.
var path = regexp.MustCompile(`\{\{\s*([^}]+?)\s*\}\}`)

// RenderPaths evaluates texts of the smaller language of rules: only paths stand
// between {{ and }}, fields and indexes with points between them. What a path does
// not lead to is null, and nothing within a text. The value of a path is never
// looked through for templates. A {{ that is not closed is an error: whoever wrote it
// meant something.
func RenderPaths(value any, scope map[string]any) (any, error) {
	size := 0
	return render(value, "", 0, func(text string) (any, error) { return paths(text, scope, &size) })
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
			return nil, &Error{Source: source, Offset: match[0], Text: fmt.Sprintf("the texts become longer than %d bytes", maxSize)}
		}
	}
	if open := strings.LastIndex(source, opening); open >= at && !strings.Contains(source[open:], closing) {
		return nil, &Error{Source: source, Offset: open, Text: "the template is not closed by }}"}
	}
	text.WriteString(source[at:])
	*size += text.Len()
	return text.String(), nil
}

// follow goes along a path and returns what is there, or nil.
func follow(scope map[string]any, path string) any {
	var value any = scope
	for segment := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[segment]
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
