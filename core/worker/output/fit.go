package output

import "unicode/utf8"

// escapeSize is how long a character is in JSON that is written as \u0001.
const escapeSize = 6

// Fit returns the longest beginning of a text that has at most this many bytes in JSON,
// without its quotes, and how many it has. The encoder leaves characters of HTML as they
// are.
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
