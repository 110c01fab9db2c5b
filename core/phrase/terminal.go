package phrase

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Steers reports whether a character controls a terminal (C0, DEL, C1), changes the direction of text, is
// invisible (zero width, tags), or breaks lines. This includes line breaks and tabs.
func Steers(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// UTF8 reports whether the locale of an environment is in UTF-8. If none is known, the terminal may show UTF-8 or not.
func UTF8(environ []string) (utf8, known bool) {
	for _, name := range []string{"LC_ALL=", "LC_CTYPE=", "LANG="} {
		for _, entry := range environ {
			if locale, ok := strings.CutPrefix(entry, name); ok && locale != "" {
				locale = strings.ToUpper(locale)
				return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8"), true
			}
		}
	}
	return false, false
}

// JSON escapes these characters in a JSON document as JSON does, so that its value stays the same. It keeps line
// breaks and tabs.
func JSON(document string) string {
	return escape(document, func(r rune) bool { return r == '\n' || r == '\t' }, func(r rune) string {
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// Visible replaces these characters in a text by readable escapes. It keeps line breaks.
func Visible(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' }, func(r rune) string {
		quoted := strconv.QuoteRuneToASCII(r)
		return quoted[1 : len(quoted)-1]
	})
}

// Line is Visible on one line: line breaks and tabs become spaces.
func Line(text string) string {
	return Visible(strings.Map(func(r rune) rune {
		if strings.ContainsRune("\n\r\t\v\f", r) {
			return ' '
		}
		return r
	}, text))
}

func escape(text string, keep func(rune) bool, as func(rune) string) string {
	steers := func(r rune) bool { return Steers(r) && !keep(r) }
	if strings.IndexFunc(text, steers) < 0 {
		return text
	}
	var out strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if steers(r) {
			out.WriteString(as(r))
		} else {
			out.WriteString(rest[:size]) // invalid UTF-8 stays
		}
		rest = rest[size:]
	}
	return out.String()
}
