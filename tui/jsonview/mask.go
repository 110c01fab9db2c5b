package jsonview

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/attune-go/attune/tui/widget"
)

// maskedText stands in place of a secret in a document.
const maskedText = `"` + widget.Masked + `"`

// namesSecret reports whether a quoted key names a secret, however it is written.
func namesSecret(quoted string) bool {
	if strings.Contains(quoted, `\`) {
		var key string
		if json.Unmarshal([]byte(quoted), &key) != nil {
			return true // nobody can say what it names
		}
		quoted = key
	}
	return widget.IsSecret(quoted)
}

// address finds the password in an address such as amqp://user:password@host, also
// where JSON escapes the slashes.
var address = regexp.MustCompile(`(:\\?/\\?/[^/\s:@"]*:)[^/\s@"]+@`)

// hasAddress reports whether there may be an address in a text.
func hasAddress(text string) bool {
	return strings.Contains(text, "://") || strings.Contains(text, `:\/\/`) || strings.Contains(text, `:\//`) || strings.Contains(text, `:/\/`)
}

// maskAddresses hides the passwords of addresses in a text.
func maskAddresses(text string) string {
	if !hasAddress(text) {
		return text
	}
	return address.ReplaceAllString(text, "${1}"+widget.Masked+"@")
}

// Redact returns a document with its secrets masked and everything else as it
// was, for what leaves the dashboard.
func Redact(text string) string {
	d := scan(text)
	if d.plain {
		return strings.Join(maskPlain(strings.Split(text, "\n")), "\n")
	}
	var b strings.Builder
	kept := 0
	for i := 0; i < len(d.lines); i++ {
		l := &d.lines[i]
		if !l.is(secret) {
			continue
		}
		b.WriteString(maskAddresses(text[kept:l.val]))
		b.WriteString(maskedText)
		kept = d.end(i)
		i = d.last(i)
	}
	b.WriteString(maskAddresses(text[kept:]))
	return b.String()
}

// end is where the value of a line ends, brackets included. The last one of a text
// that was cut ends with it.
func (d *document) end(i int) int {
	l := &d.lines[i]
	switch {
	case l.is(opens) && l.pair == int32(i):
		return len(d.text)
	case l.is(opens):
		return int(d.lines[l.pair].valEnd)
	case l.is(empty):
		return int(l.valEnd) + strings.IndexAny(d.text[l.valEnd:], "}]") + 1
	default:
		return int(l.valEnd)
	}
}

// last is the last line of what begins with a line.
func (d *document) last(i int) int {
	l := &d.lines[i]
	if l.is(opens) && l.pair == int32(i) {
		return len(d.lines) - 1
	}
	return max(i, int(l.pair))
}

// maskPlain hides what stands behind a word that names a secret.
func maskPlain(lines []string) []string {
	for i, text := range lines {
		lines[i] = maskAddresses(widget.MaskLine(text))
	}
	return lines
}
