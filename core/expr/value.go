package expr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Values are nil, bool, int64, json.Number, float64, string, []any and map[string]any. A json.Number is a number that
// was given and is no int64: it keeps its digits. A float64 was computed.

// FromJSON reads a value; whole numbers become integers.
func FromJSON(raw []byte) (any, error) {
	var value any
	if err := jsonvalue.Decode(raw, &value); err != nil {
		return nil, fmt.Errorf("read a value: %w", err)
	}
	return Value(value), nil
}

// Value converts a value of encoding/json, yaml or Go code. Any other type becomes its text.
func Value(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v
	case float32:
		return float64(v)
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case json.Number:
		return given(v)
	case []string:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = item
		}
		return list
	case map[string]any, []any:
		return jsonvalue.Map(v, Value)
	default:
		return fmt.Sprint(v)
	}
}

// Truthy is the truth value of a value: false for null, false, zero and empty ones.
func Truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case json.Number:
		return decimalOf(v).digits != ""
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	case Object:
		return len(v.Keys()) > 0
	default:
		return true
	}
}

// kindOf is the value of the function type_of.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case int64, float64, json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// Equal compares two values deeply.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case int64, float64, json.Number:
		order, ok := CompareNumbers(a, b)
		return ok && order == 0
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, Equal)
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, other, Equal)
	default:
		switch b.(type) {
		case []any, map[string]any:
			return false
		}
		return a == b
	}
}

// compare orders numbers, strings, and lists of them.
func compare(a, b any) (int, bool) {
	if order, ok := CompareNumbers(a, b); ok {
		return order, true
	}
	switch a := a.(type) {
	case string:
		other, ok := b.(string)
		return strings.Compare(a, other), ok
	case []any:
		other, ok := b.([]any)
		if !ok {
			return 0, false
		}
		for i := range min(len(a), len(other)) {
			if order, ok := compare(a[i], other[i]); !ok || order != 0 {
				return order, ok
			}
		}
		return cmp.Compare(len(a), len(other)), true
	}
	return 0, false
}

// Secret is the key of an object that is the marker of a secret value. A marker within a text also has the key text,
// for a value that replaces it as text; a marker in a list or object is replaced by JSON.
const Secret = "$attune_secret"

// Text converts a value to text: null is empty, lists and objects are JSON with sorted keys.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case json.Number:
		return v.String()
	case map[string]any:
		if v[Secret] == true {
			marker := maps.Clone(v)
			marker["text"] = true
			return string(toJSON(marker))
		}
		return string(toJSON(v))
	default:
		return string(toJSON(v))
	}
}

// floatText writes a float with a point, and only a very large or very small one with an exponent.
func floatText(f float64) string {
	if size := math.Abs(f); size != 0 && (size < 1e-5 || size >= 1e16) {
		digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		n, err := strconv.Atoi(exponent)
		if err != nil {
			return digits // cannot happen: no evaluation gives NaN or an infinity
		}
		return digits + "e" + strconv.Itoa(n)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// JSON is a value as JSON without escapes for HTML.
func JSON(v any) string { return string(toJSON(Value(v))) }

func toJSON(v any) []byte {
	raw, err := jsonvalue.Encode(v)
	if err != nil {
		return []byte("null") // cannot happen: no evaluation gives NaN or an infinity
	}
	return raw
}
