package jsonvalue

// Map copies a value with leaf of each text, number and other single value in it.
func Map(value any, leaf func(any) any) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = Map(item, leaf)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Map(item, leaf)
		}
		return list
	default:
		return leaf(value)
	}
}
