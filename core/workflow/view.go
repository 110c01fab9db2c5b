package workflow

import (
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// ViewOf is a result as task.NAME shows it: the result with the keys of its data
// beside its own, which win. Without data, and if what the action has printed is a
// JSON object, the keys of that are. Its numbers are those of expressions.
func ViewOf(result any) any {
	value := expr.Value(result)
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	data, there := object["data"]
	if more, ok := data.(map[string]any); ok {
		return merged(object, more)
	}
	if there && data != nil {
		return object
	}
	if printed, ok := object["stdout"].(string); ok && strings.HasPrefix(strings.TrimSpace(printed), "{") {
		parsed, err := expr.FromJSON([]byte(printed))
		if more, ok := parsed.(map[string]any); ok && err == nil {
			return merged(object, more)
		}
	}
	return object
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
		value := expr.Value(children[0])
		return Result{Value: value, View: ViewOf(value)}
	}
	size := 0
	if st != nil {
		size = st.Total
	}
	for index := range children {
		size = max(size, index+1)
	}
	values, views := make([]any, size), make([]any, size)
	for index, child := range children {
		values[index] = expr.Value(child)
		views[index] = ViewOf(values[index])
	}
	return Result{Value: values, View: views}
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
