package deadletter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attune-go/attune/core/broker"
)

// Limits of the content that the ledger keeps of one dead letter.
const (
	MaxBody    = 1 << 20  // bytes of a body
	maxValue   = 4 << 10  // bytes of one value in a header
	maxHeaders = 64 << 10 // bytes of all headers
	maxItems   = 100      // of one table or list
	maxNesting = 8        // of tables in tables
)

// jsonOf encodes headers as JSON that the database accepts. Bytes, and text with a NUL or invalid
// UTF-8, become {"base64": …}; values that are too long are cut and marked.
func jsonOf(value any) []byte {
	raw, err := json.Marshal(plain(value, 0))
	switch {
	case err != nil:
		raw = encode(map[string]any{"unreadable": clean(err.Error())})
	case len(raw) > maxHeaders:
		digest := sha256.Sum256(raw)
		raw = encode(map[string]any{"cut": true, "bytes": len(raw), "sha256": hex.EncodeToString(digest[:])})
	}
	return raw
}

// plain converts a header value to JSON types.
func plain(value any, depth int) any {
	if depth > maxNesting {
		return map[string]any{"cut": true}
	}
	switch v := value.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return v
	case float32:
		return number(float64(v))
	case float64:
		return number(v)
	case string:
		return text(v)
	case []byte:
		return binary(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []any:
		list := make([]any, 0, min(len(v), maxItems))
		for _, item := range v[:min(len(v), maxItems)] {
			list = append(list, plain(item, depth+1))
		}
		if len(v) > maxItems {
			list = append(list, map[string]any{"cut": true, "items": len(v)})
		}
		return list
	case broker.Table:
		return plain(map[string]any(v), depth)
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		table := make(map[string]any, min(len(v), maxItems))
		for _, name := range names[:min(len(names), maxItems)] {
			table[clean(name)] = plain(v[name], depth+1)
		}
		if len(v) > maxItems {
			table["cut"] = len(v)
		}
		return table
	default:
		return text(fmt.Sprint(v))
	}
}

// number returns a number that JSON can hold, or its name.
func number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	return v
}

func text(v string) any {
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		return binary([]byte(v))
	}
	if len(v) > maxValue {
		return map[string]any{"cut": true, "bytes": len(v), "begin": clean(v[:maxValue])}
	}
	return v
}

func binary(v []byte) any {
	kept := map[string]any{"base64": base64.StdEncoding.EncodeToString(v[:min(len(v), maxValue)])}
	if len(v) > maxValue {
		kept["cut"], kept["bytes"] = true, len(v)
	}
	return kept
}

// clean returns text that the database accepts.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func encode(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{}`) // cannot happen: text, numbers and times only
	}
	return raw
}
