package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDepth is how deep a result may nest. The database would refuse much
// deeper values with an error that depends on its stack.
const maxDepth = 512

// maxExponent is far within what jsonb's numbers can hold.
const maxExponent = 10_000

var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// Text returns the bytes as a string that a database can store: what is no
// UTF-8 and every U+0000 becomes U+FFFD.
func Text(raw []byte) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

// Value encodes what a Go function returned. Nil gives nil.
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
	if storable(raw) {
		return raw, nil
	}
	decoded, err := decodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return encode(decoded)
}

// storable is a cheap test that never says yes wrongly. The text is valid JSON.
func storable(raw []byte) bool {
	depth, deepest := 0, 0
	for i, c := range raw {
		switch c {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case 'u':
			if i > 0 && raw[i-1] == '\\' {
				return false
			}
		case 'e', 'E':
			if i > 0 && '0' <= raw[i-1] && raw[i-1] <= '9' {
				return false
			}
		}
	}
	// Brackets inside strings may hide depth only in a text this long.
	return deepest <= maxDepth && bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) <= maxDepth
}

// encode cleans a decoded value and writes it as compact JSON.
func encode(value any) (json.RawMessage, error) {
	clean, err := cleaned(value, 0)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	raw, err := json.Marshal(clean)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return raw, nil
}

// cleaned returns the value with everything replaced that jsonb refuses.
func cleaned(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v := value.(type) {
	case string:
		return Text([]byte(v)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
		return v, nil
	case json.Number:
		return number(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case []any:
		return list(v, depth)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			clean, err := cleaned(item, depth+1)
			if err != nil {
				return nil, err
			}
			out[Text([]byte(key))] = clean
		}
		return out, nil
	case map[any]any: // YAML with keys that are no strings
		out := make(map[string]any, len(v))
		for key, item := range v {
			clean, err := cleaned(item, depth+1)
			if err != nil {
				return nil, err
			}
			out[Text([]byte(fmt.Sprint(key)))] = clean
		}
		return out, nil
	}
	return value, nil
}

func list(items []any, depth int) (any, error) {
	out := make([]any, len(items))
	for i, item := range items {
		clean, err := cleaned(item, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = clean
	}
	return out, nil
}

// number keeps a number that jsonb can hold and turns any other into a string.
func number(n json.Number) any {
	text := n.String()
	if len(text) > maxExponent {
		return text
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return text
		}
	}
	return n
}
