package workflow

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// ViewOf is a result as result() and task.NAME show it: the result with the keys of
// its data beside its own, which win. If there is no data, and what the action has
// printed is a JSON object, the keys of that are. Its numbers are those of expressions.
func ViewOf(result any) any {
	value := expr.Value(result)
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	more, ok := object["data"].(map[string]any)
	if _, there := object["data"]; !there {
		more, ok = printed(object["stdout"])
	}
	if !ok {
		return object
	}
	return merged(object, more)
}

// printed is the JSON object that a text is.
func printed(stdout any) (map[string]any, bool) {
	text, _ := stdout.(string)
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, false
	}
	value, err := expr.FromJSON([]byte(text))
	object, ok := value.(map[string]any)
	return object, ok && err == nil
}

// Answered is a result with what a person has answered, as response. A result that
// is no object is kept beside it as result.
func Answered(result, response any) any {
	object, ok := result.(map[string]any)
	if !ok {
		object = map[string]any{}
		if result != nil {
			object["result"] = result
		}
	}
	return merged(map[string]any{"response": response}, object)
}

// ViewOfItems is a task over a list as task.NAME shows it: the views of its
// children in order, and how many there are of each kind.
func ViewOfItems(st *TaskState, views []any) any {
	return map[string]any{
		"results":         views,
		"items_total":     int64(st.Total),
		"succeeded_count": int64(st.Succeeded),
		"failed_count":    int64(st.Failed),
		"timed_out_count": int64(st.TimedOut),
		"succeeded":       st.Failed == 0 && st.TimedOut == 0 && st.Succeeded == st.Total,
		"failed":          st.Failed > 0,
		"timed_out":       st.Failed == 0 && st.TimedOut > 0,
	}
}

// ResultOf makes the result of a task of those of its children, by index: the last
// repetition of each. Those of a task over a list that have none are null. All it
// wants of the state is how many children there are; it may be nil.
func (t *Task) ResultOf(st *TaskState, children map[int]any) Result {
	if t.WithItems == nil {
		view := ViewOf(children[0])
		return Result{Value: view, View: view}
	}
	size := 0
	if st != nil {
		size = st.Total
	}
	for index := range children {
		size = max(size, index+1)
	}
	views := make([]any, size)
	for index, child := range children {
		views[index] = ViewOf(child)
	}
	return Result{Value: views, View: views}
}

// ofList is the result of a task over a list, as long as the list is: the last items
// may have no children.
func (st *TaskState) ofList(r Result) Result {
	return Result{Value: padded(r.Value, st.Total), View: ViewOfItems(st, padded(r.View, st.Total))}
}

func padded(list any, size int) []any {
	items, _ := list.([]any)
	return append(slices.Clone(items), make([]any, max(size-len(items), 0))...)
}

// kind names the kind of a value, for people.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
