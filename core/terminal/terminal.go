// Package terminal keeps text that people did not write from steering their terminal,
// or from looking like other text.
//
// Steers tells the characters; JSON and Visible write them as escapes. All of it is
// pure, and no text makes it fail.
package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Steers reports whether a character controls a terminal (C0, DEL, C1), turns the
// direction of text, is invisible (zero width, tags), or breaks lines. Line breaks and tabs do:
// callers that mean these keep them.
func Steers(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// JSON writes the characters in a JSON document that steer a terminal as escapes of JSON,
// so that the document says the same. Line breaks and tabs between values stay.
func JSON(document string) string {
	return escape(document, func(r rune) bool { return r == '\n' || r == '\t' }, func(r rune) string {
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// Visible writes the characters of a text that steer a terminal as escapes that people
// can read. Line breaks stay.
func Visible(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' }, func(r rune) string {
		quoted := strconv.QuoteRuneToASCII(r)
		return quoted[1 : len(quoted)-1]
	})
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
