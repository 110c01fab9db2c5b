package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/jsonview"
)

// JSON writes a value as one line. It masks secrets, also in documents inside text fields, and keeps all digits
// of numbers.
func JSON(value any) (string, error) {
	text, err := encode(value)
	if err != nil {
		return "", fmt.Errorf("write as JSON: %w", err)
	}
	return phrase.JSON(redacted(text)), nil
}

func encode(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// redacted masks the secrets of a document and of the documents in its texts.
func redacted(text string) string {
	return jsonview.Redact(eachText(text, func(text string) string {
		trimmed := strings.TrimSpace(text)
		if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
			return text
		}
		if json.Valid([]byte(text)) {
			return redacted(text)
		}
		return jsonview.Redact(text) // a truncated document
	}))
}

// eachText applies change to every string of a JSON document, and copies the rest byte by byte.
func eachText(doc string, change func(text string) string) string {
	var b strings.Builder
	for {
		from := strings.IndexByte(doc, '"')
		if from < 0 {
			b.WriteString(doc)
			return b.String()
		}
		end := from + 1
		for end < len(doc) && doc[end] != '"' {
			if doc[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(doc))
		b.WriteString(doc[:from])
		b.WriteString(changed(doc[from:end], change))
		doc = doc[end:]
	}
}

func changed(quoted string, change func(text string) string) string {
	var text string
	if json.Unmarshal([]byte(quoted), &text) != nil {
		return quoted
	}
	now := change(text)
	if now == text {
		return quoted
	}
	if encoded, err := encode(now); err == nil {
		return encoded
	}
	return quoted
}

// Plain removes characters that control a terminal or turn the direction of text. Line breaks and tabs stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if phrase.Steers(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Query returns the shell command that selects rows of a table with psql. The address comes from the environment,
// so that the command contains no password.
func Query(schema, table, where string) string {
	if schema != "" {
		table = schema + "." + table
	}
	return `psql "$ATTUNE__DATABASE__URL" -x -c ` + act.Shell("SELECT * FROM "+table+" WHERE "+where)
}
