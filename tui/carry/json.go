package carry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/terminal"
	"github.com/attune-go/attune/tui/jsonview"
)

// JSON writes a value as one line that may leave: secrets are masked, also in
// documents that are the text of a field, and all numbers keep their digits.
func JSON(value any) (string, error) {
	text, err := encode(value)
	if err != nil {
		return "", fmt.Errorf("write as JSON: %w", err)
	}
	return terminal.JSON(redacted(text)), nil
}

func encode(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// redacted masks the secrets of a document and of those within its texts.
func redacted(text string) string {
	return jsonview.Redact(eachText(text, func(said string) string {
		trimmed := strings.TrimSpace(said)
		if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
			return said
		}
		if json.Valid([]byte(said)) {
			return redacted(said)
		}
		return jsonview.Redact(said) // a document that was cut off
	}))
}

// eachText replaces every text of a JSON document by what change makes of it.
func eachText(doc string, change func(said string) string) string {
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

func changed(quoted string, change func(said string) string) string {
	var said string
	if json.Unmarshal([]byte(quoted), &said) != nil {
		return quoted
	}
	now := change(said)
	if now == said {
		return quoted
	}
	text, err := encode(now)
	if err != nil {
		return quoted
	}
	return text
}

// Plain is a text as it may leave without a form around it: what is harmful is left
// out, lines stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if terminal.Steers(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
