package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Text returns the bytes as a string that the database accepts: bytes that are no UTF-8, and U+0000, become U+FFFD.
func Text(raw []byte) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

// Value encodes the return value of a Go function. Nil gives nil.
func Value(value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		if _, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
			return encode(value) // a NaN in plain maps and lists can be replaced
		}
		return nil, fmt.Errorf("encode result: %w", err)
	}
	if jsonvalue.Check(name, raw) == nil {
		return raw, nil
	}
	decoded, err := decodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return encode(decoded)
}

// name begins the path to a part of a result.
const name = "result"

// encode cleans a decoded value and writes it as compact JSON. A too large or too deeply nested value is an error with
// the path of the part.
func encode(value any) (json.RawMessage, error) {
	raw, err := json.Marshal(cleaned(value, 0))
	if err == nil {
		err = jsonvalue.Check(name, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return raw, nil
}

// cleaned replaces all values that jsonb refuses. It goes one level deeper than the allowed nesting, so that
// jsonvalue.Check finds the excess.
func cleaned(value any, depth int) any {
	if depth > jsonvalue.Depth+1 {
		return nil
	}
	switch v := value.(type) {
	case string:
		return Text([]byte(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	case json.Number:
		return number(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = cleaned(item, depth+1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[Text([]byte(key))] = cleaned(item, depth+1)
		}
		return out
	}
	return value
}

// number keeps a number that jsonb accepts, and converts any other to a string.
func number(n json.Number) any {
	text := n.String()
	if len(text) > jsonvalue.Digits {
		return text
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if err != nil || exponent > jsonvalue.Digits || exponent < -jsonvalue.Digits {
			return text
		}
	}
	return n
}
