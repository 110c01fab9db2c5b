package widget

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/attune-go/attune/core/monitor"
)

// Masked replaces the value of a secret.
const Masked = monitor.Masked

var secretKey = regexp.MustCompile(monitor.SecretNames)

// IsSecret reports whether a key names a secret.
func IsSecret(key string) bool { return secretKey.MatchString(key) }

// MaskLine hides what stands behind a word that names a secret in a line of text.
func MaskLine(line string) string {
	if at := secretKey.FindStringIndex(line); at != nil {
		return line[:at[1]] + " " + Masked
	}
	return line
}

// JSON writes a JSON text on indented lines that are safe to show: values under
// keys that name secrets, and values the platform has redacted, are masked.
// Large numbers keep every digit. A text that is not JSON, such as one that was
// cut off, is shown as it is, with anything after a secret's key masked.
func JSON(text string) []string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return maskLines(CleanLines(text))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(mask(value)); err != nil {
		return maskLines(CleanLines(text))
	}
	return CleanLines(strings.TrimRight(out.String(), "\n"))
}

func mask(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v["$attune_secret"] == true || v["redacted"] == true {
			return Masked
		}
		for key, inner := range v {
			if secretKey.MatchString(key) && inner != nil {
				v[key] = Masked
			} else {
				v[key] = mask(inner)
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = mask(inner)
		}
	}
	return value
}

func maskLines(lines []string) []string {
	for i, line := range lines {
		lines[i] = MaskLine(line)
	}
	return lines
}
