package workflow

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// ViewOf is the value of result() and task.NAME: the result, with the keys of its data that it does not have. Without
// data they are the keys of a printed JSON object. Its numbers are those of expressions.
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

// printed reads a JSON object from the output of an action.
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

// Answered adds the answer of a person to a result, as response. A result that is no object is under result.
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

// ViewOfItems is the value of task.NAME for a task over a list: the views of its children in order, and their counts.
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

// ResultOf makes the result of a task from those of its children by index, each the last retry. Missing ones of a list
// are null. The state, which may be nil, gives the number of children.
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

// ofList makes the result of a task over a list. It is as long as the list: the last items may have no children.
func (st *TaskState) ofList(r Result) Result {
	return Result{Value: padded(r.Value, st.Total), View: ViewOfItems(st, padded(r.View, st.Total))}
}

func padded(list any, size int) []any {
	items, _ := list.([]any)
	return append(slices.Clone(items), make([]any, max(size-len(items), 0))...)
}

// kind describes the type of a value.
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
