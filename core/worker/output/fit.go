package output

import (
	"strings"
	"unicode/utf8"
)

// escapeSize is the length of an escape like \u0001.
const escapeSize = 6

// Fit returns the longest prefix of a text with at most so many bytes in JSON, without quotes and escapes for HTML, and
// the size of the prefix.
func Fit(text string, bytes int64) (fitting string, size int64) {
	for i, r := range text {
		next := runeSize(r)
		if size+next > bytes {
			return text[:i], size
		}
		size += next
	}
	return text, size
}

func runeSize(r rune) int64 {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == utf8.RuneError, r == '\u2028', r == '\u2029':
		return escapeSize
	}
	return int64(utf8.RuneLen(r))
}

// Quote writes a text as a string of JSON, as encoding/json does without escapes for HTML.
func Quote(out *strings.Builder, text string) {
	const hex = "0123456789abcdef"
	out.WriteByte('"')
	from := 0 // the beginning of the unwritten part without escapes
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			out.WriteString(text[from:i])
			switch c {
			case '"', '\\':
				out.WriteByte('\\')
				out.WriteByte(c)
			case '\n':
				out.WriteString(`\n`)
			case '\r':
				out.WriteString(`\r`)
			case '\t':
				out.WriteString(`\t`)
			case '\b':
				out.WriteString(`\b`)
			case '\f':
				out.WriteString(`\f`)
			default:
				out.WriteString(`\u00`)
				out.WriteByte(hex[c>>4])
				out.WriteByte(hex[c&0xf])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		escape := ""
		switch {
		case r == utf8.RuneError && size == 1:
			escape = `\ufffd`
		case r == '\u2028':
			escape = `\u2028`
		case r == '\u2029':
			escape = `\u2029`
		}
		if escape != "" {
			out.WriteString(text[from:i])
			out.WriteString(escape)
			from = i + size
		}
		i += size
	}
	out.WriteString(text[from:])
	out.WriteByte('"')
}
