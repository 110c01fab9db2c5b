package jsonview

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
)

// The properties of a line.
const (
	opens  uint8 = 1 << iota // a bracket with content
	closes                   // a closing bracket
	empty                    // {} or []
	comma                    // another element follows
	secret                   // the value is masked
	long                     // the value is longer than what was read
)

// line is a line of a document, as offsets into its text.
type line struct {
	key, keyEnd int32 // with quotes; equal without a key
	val, valEnd int32 // the value, or the bracket
	pair        int32 // the other bracket, or the line itself
	parent      int32 // the enclosing bracket, -1 at the top
	index       int32 // the index in the enclosing bracket
	count       int32 // the number of elements of a bracket
	depth       int32
	flags       uint8
}

func (l *line) is(flag uint8) bool { return l.flags&flag != 0 }

// document is a parsed text.
type document struct {
	text  string
	lines []line
	// plain is true if the text is no JSON, meant if it need not be, cut if it ends too early.
	plain, meant, cut bool
}

const (
	maxText  = 1 << 30 // offsets have 32 bits
	maxDepth = 10_000  // the limit of encoding/json
)

func parse(text string) *document {
	text = text[:min(len(text), maxText)]
	d := &document{text: text}
	if d.read() {
		return d
	}
	d = parseText(text)
	d.meant = false
	return d
}

func parseText(text string) *document {
	text = text[:min(len(text), maxText)]
	d := &document{text: text, plain: true, meant: true}
	at := int32(0)
	for part := range strings.Lines(text) {
		n, end := int32(len(d.lines)), at+int32(len(strings.TrimSuffix(part, "\n")))
		d.lines = append(d.lines, line{key: at, keyEnd: at, val: at, valEnd: end, pair: n, parent: -1, index: n})
		at += int32(len(part))
	}
	return d
}

// read finds the lines of a JSON text by the offsets of its tokens. It returns false if the text is no JSON.
func (d *document) read() bool {
	decoder := json.NewDecoder(strings.NewReader(d.text))
	decoder.UseNumber()
	secrets := secretNames{}
	open, key, keyEnd := int32(-1), int32(0), int32(0)
	add := func(l line) {
		if open >= 0 {
			around := &d.lines[open]
			l.parent, l.depth, l.index = open, around.depth+1, around.count
			around.count++
		}
		if keyEnd > 0 {
			l.key, l.keyEnd, keyEnd = key, keyEnd, 0
			name, value := d.text[l.key:l.keyEnd], d.text[l.val:l.valEnd]
			if secrets.has(name) && value != "null" {
				l.flags |= secret
			}
			if (name == `"$attune_secret"` || name == `"redacted"`) && value == "true" {
				d.lines[open].flags |= secret
			}
		}
		d.lines = append(d.lines, l)
	}
	for at := int32(0); ; {
		token, err := decoder.Token()
		at = d.skipSeparators(at)
		n, end := int32(len(d.lines)), int32(decoder.InputOffset())
		l := line{key: at, keyEnd: at, val: at, valEnd: end, pair: n, parent: -1}
		at = end
		delim, _ := token.(json.Delim)
		isKey := open >= 0 && keyEnd == 0 && d.text[d.lines[open].val] == '{'
		switch {
		case err != nil && open < 0:
			return errors.Is(err, io.EOF) && n > 0
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the text was cut off
			l.valEnd, l.flags = int32(len(d.text)), long
			if last := &d.lines[n-1]; l.val < l.valEnd && !isKey {
				add(l)
			} else if !last.is(opens|closes|empty) && d.text[last.val] != '"' && last.valEnd == l.valEnd {
				last.flags |= long
			}
			d.endCut(open)
			return true
		case err != nil, open < 0 && n > 0, n > 0 && d.lines[n-1].depth > maxDepth:
			return false
		case delim == '}' || delim == ']':
			open = d.endElement(open, l)
		case isKey:
			key, keyEnd = l.val, end
		case delim != 0:
			l.flags = opens
			add(l)
			open = n
		default:
			add(l)
		}
	}
}

// skipSeparators returns the offset of the next token, and marks the line before a comma.
func (d *document) skipSeparators(at int32) int32 {
	for ; int(at) < len(d.text) && strings.IndexByte(" \t\r\n,:", d.text[at]) >= 0; at++ {
		if d.text[at] == ',' && len(d.lines) > 0 {
			d.lines[len(d.lines)-1].flags |= comma
		}
	}
	return at
}

// endElement ends the open element with its bracket, and returns the element around it.
func (d *document) endElement(open int32, bracket line) int32 {
	around := &d.lines[open]
	parent := around.parent
	if around.count == 0 {
		around.flags, around.valEnd = around.flags&^opens|empty, bracket.valEnd
		return parent
	}
	bracket.pair, bracket.parent, bracket.index, bracket.depth = open, parent, around.index, around.depth
	bracket.flags = closes
	around.pair = int32(len(d.lines))
	d.lines = append(d.lines, bracket)
	return parent
}

// secretNames caches for each key whether it names a secret.
type secretNames map[string]bool

func (s secretNames) has(name string) bool {
	found, known := s[name]
	if !known {
		found = namesSecret(name)
		s[name] = found
	}
	return found
}

// endCut ends all open elements of a truncated text.
func (d *document) endCut(open int32) {
	for ; open >= 0; open = d.lines[open].parent {
		d.lines[open].pair = int32(len(d.lines) - 1)
	}
	d.cut = true
}

// end is the end of the value of a line, with its brackets. In a truncated text it is the end of the text.
func (d *document) end(i int32) int32 {
	l := &d.lines[i]
	switch last := &d.lines[l.pair]; {
	case !l.is(opens):
		return l.valEnd
	case last.is(closes) && last.pair == i:
		return last.valEnd
	default:
		return int32(len(d.text))
	}
}

// last is the last line of the element that begins with a line.
func (d *document) last(i int32) int32 { return max(i, d.lines[i].pair) }

// path is the path of a line, such as /headers/0/name.
func (d *document) path(i int32) string {
	l := &d.lines[i]
	if l.is(closes) {
		l = &d.lines[l.pair]
	}
	if l.parent < 0 {
		return ""
	}
	name := strconv.Itoa(int(l.index))
	if l.key != l.keyEnd {
		name = strings.Trim(unescape(d.text[l.key:l.keyEnd]), `"`)
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return d.path(l.parent) + "/" + name
}

// Masked replaces the value of a secret.
const Masked = monitor.Masked

// maskedText is Masked as a JSON string.
const maskedText = `"` + Masked + `"`

var secretKey = regexp.MustCompile(monitor.SecretNames)

// namesSecret reports whether a quoted key names a secret, with or without escapes.
func namesSecret(quoted string) bool {
	var key string
	return json.Unmarshal([]byte(quoted), &key) != nil || secretKey.MatchString(key)
}

// address matches the password of an address such as amqp://user:password@host, also with escaped slashes.
var address = regexp.MustCompile(`(:\\?/\\?/[^/\s:@"]*:)[^/\s@"]+@`)

// maskAddresses masks the passwords of addresses.
func maskAddresses(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	return address.ReplaceAllString(text, "${1}"+Masked+"@")
}

// maskLine masks the words after the name of a secret, and the passwords of addresses.
func maskLine(text string) string {
	if at := secretKey.FindStringIndex(text); at != nil {
		text = text[:at[1]] + " " + Masked
	}
	return maskAddresses(text)
}

// Redact masks the secrets of a document. Everything else stays byte by byte.
func Redact(text string) string {
	d := parse(text)
	if d.plain {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = maskLine(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	var b strings.Builder
	kept := int32(0)
	for i := int32(0); int(i) < len(d.lines); i++ {
		if d.lines[i].is(secret) {
			b.WriteString(maskAddresses(text[kept:d.lines[i].val]) + maskedText)
			kept = d.end(i)
			i = d.last(i)
		}
	}
	b.WriteString(maskAddresses(text[kept:]))
	return b.String()
}
