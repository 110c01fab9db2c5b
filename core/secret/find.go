package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// shortest is below how many bytes a secret is not searched, and shortestLine a line of a longer secret: they are
	// part of any text.
	shortest     = 4
	shortestLine = 8

	// Mask replaces a secret in a text.
	Mask = "***"
	// Unsearched replaces a whole text after an aborted search.
	Unsearched = Mask + " (hidden, because the search for secrets in it took too long)"

	// effortPerByte is how many bytes a search may compare for each byte of the text, and at least effortLeast.
	effortPerByte = 256
	effortLeast   = 64 << 20
	// window bounds the memory of a search: it decodes JSON escapes in parts of this size, or of widest times
	// the longest secret.
	window = 1 << 20
	widest = 24
)

// Finder finds secrets in the output of an action. The zero Finder knows none. It is safe for concurrent use.
//
// It finds texts, lines of longer texts (without surrounding space) and numbers. It finds them literally,
// escaped by any JSON encoder, also in JSON inside JSON, and as base64 of the whole, with or without padding or
// a final line break, in one line or in lines of 64 or 76. A number must have no other digits next to it.
//
// The time of a search grows with the text, not with the number of secrets. A text that would take longer is
// hidden whole.
type Finder struct {
	patterns []pattern
	first    [1 << 16 / 64]uint64 // a bit for the first two bytes of each pattern
	index    map[uint32][]pattern // by the first four bytes, the longest first
}

// pattern is a form of a secret.
type pattern struct {
	text   string
	number bool // no digit may be next to it
	padded bool // base64 without its padding
}

// With returns a Finder that also knows these secrets.
func (f *Finder) With(values ...any) *Finder {
	patterns := slices.Clone(f.known())
	for _, value := range values {
		patterns = forms(patterns, value)
	}
	if len(patterns) == len(f.known()) {
		return f
	}
	slices.SortFunc(patterns, func(a, b pattern) int {
		return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text), order(a.number)-order(b.number))
	})
	// A text precedes the same number.
	patterns = slices.CompactFunc(patterns, func(a, b pattern) bool { return a.text == b.text })
	found := &Finder{patterns: patterns, index: map[uint32][]pattern{}}
	for _, one := range patterns {
		start := uint16(one.text[0]) | uint16(one.text[1])<<8
		found.first[start/64] |= 1 << (start % 64)
		key := prefix(one.text)
		found.index[key] = append(found.index[key], one)
	}
	return found
}

func (f *Finder) known() []pattern {
	if f == nil {
		return nil
	}
	return f.patterns
}

// None reports whether the Finder knows no secret.
func (f *Finder) None() bool { return len(f.known()) == 0 }

func order(number bool) int {
	if number {
		return 1
	}
	return 0
}

// forms adds the patterns of a value.
func forms(all []pattern, value any) []pattern {
	switch v := value.(type) {
	case string:
		return textForms(all, v)
	case []any:
		for _, item := range v {
			all = forms(all, item)
		}
	case map[string]any:
		for _, item := range v {
			all = forms(all, item)
		}
	}
	for _, digits := range numberTexts(value) {
		if len(strings.ReplaceAll(digits, ".", "")) >= shortest && strings.Trim(digits, "0.") != "" {
			all = append(all, pattern{text: digits, number: true})
		}
	}
	return all
}

// numberTexts returns the notations of a number without its sign, with and without an exponent.
func numberTexts(value any) []string {
	var text string
	switch v := value.(type) {
	case json.Number:
		text = v.String()
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return nil
	}
	texts := []string{strings.TrimLeft(text, "-")}
	if n, err := strconv.ParseFloat(texts[0], 64); err == nil && strings.ContainsAny(text, "eE") {
		texts = append(texts, strconv.FormatFloat(n, 'f', -1, 64))
	}
	return texts
}

func textForms(all []pattern, text string) []pattern {
	if len(text) < shortest {
		return all
	}
	all = append(all, pattern{text: text})
	if strings.Contains(text, "\x00") { // stored results have the replacement character
		all = append(all, pattern{text: strings.ReplaceAll(text, "\x00", "\uFFFD")})
	}
	if strings.ContainsAny(text, "\r\n") {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= shortestLine {
				all = append(all, pattern{text: line})
			}
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for _, ending := range []string{"", "\n"} {
			encoded := encoding.EncodeToString([]byte(text + ending))
			all = append(all, pattern{text: encoded, padded: true})
			for _, width := range []int{64, 76} {
				if len(encoded) > width {
					var lines []string
					for line := range slices.Chunk([]byte(encoded), width) {
						lines = append(lines, string(line))
					}
					all = append(all, pattern{text: strings.Join(lines, "\n"), padded: true})
				}
			}
		}
	}
	return all
}

// Hide replaces every secret in a text by Mask.
func (f *Finder) Hide(text string) string {
	spans, ok := f.search(text, &effort{left: effortLeast})
	if !ok {
		return Unsearched
	}
	if len(spans) == 0 {
		return text
	}
	var out strings.Builder
	end := 0
	for _, one := range spans {
		out.WriteString(text[end:one.from])
		out.WriteString(Mask)
		end = one.to
	}
	out.WriteString(text[end:])
	return out.String()
}

// In returns the JSON pointers of texts and numbers with a secret, and of objects with a secret in the name of a
// member. It returns no pointers below these.
func (f *Finder) In(value any) []string {
	if f.None() {
		return nil
	}
	var found []string
	effort := effort{left: effortLeast}
	each(value, "", func(path string, at any) bool {
		if f.repeats(at, &effort) {
			found = append(found, path)
			return false
		}
		return true
	})
	return found
}

func (f *Finder) repeats(at any, effort *effort) bool {
	switch v := at.(type) {
	case string:
		return f.has(v, effort)
	case map[string]any:
		for name := range v {
			if f.has(name, effort) {
				return true
			}
		}
	}
	for _, text := range numberTexts(at) {
		if f.has(text, effort) {
			return true
		}
	}
	return false
}

func (f *Finder) has(text string, effort *effort) bool {
	spans, ok := f.search(text, effort)
	return !ok || len(spans) > 0
}

// span is a part of a text.
type span struct{ from, to int }

// effort bounds the time of a search.
type effort struct{ left int }

// search returns the places of secrets, in order and without overlaps, or false if it took too long.
func (f *Finder) search(text string, effort *effort) ([]span, bool) {
	if f.None() || len(text) < shortest {
		return nil, true
	}
	effort.left += effortPerByte * len(text)
	spans, ok := f.scan(nil, text, func(i int) int { return i }, effort)
	if !ok {
		return nil, false
	}
	overlap := widest * len(f.patterns[0].text)
	size := max(window, 4*overlap)
	for from := 0; strings.IndexByte(text[from:], '\\') >= 0; {
		to := min(from+size, len(text))
		if spans, ok = f.scanEscaped(spans, text[from:to], from, effort); !ok {
			return nil, false
		}
		if to == len(text) {
			break
		}
		from = to - overlap
		for n := 0; n < overlap && text[from-1] == '\\'; n++ { // no part begins inside an escape
			from--
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	merged := spans[:0]
	for _, one := range spans {
		if last := len(merged) - 1; last >= 0 && one.from < merged[last].to {
			merged[last].to = max(merged[last].to, one.to)
			continue
		}
		merged = append(merged, one)
	}
	return merged, true
}

// scanEscaped searches a part of a text after decoding its JSON escapes once, and twice.
func (f *Finder) scanEscaped(spans []span, text string, from int, effort *effort) ([]span, bool) {
	at := func(i int) int { return from + i }
	for range 2 {
		decoded, starts := unescaped(text)
		if starts == nil {
			return spans, true
		}
		outer := at
		at = func(i int) int { return outer(int(starts[i])) }
		var ok bool
		if spans, ok = f.scan(spans, decoded, at, effort); !ok {
			return nil, false
		}
		text = decoded
	}
	return spans, true
}

// scan adds the longest secret at every place of a text. at converts an index to the original text. A secret
// that overlaps the one before extends it.
func (f *Finder) scan(found []span, text string, at func(int) int, effort *effort) ([]span, bool) {
	last := span{-1, -1}
	for i := 0; i+shortest <= len(text); i++ {
		start := uint16(text[i]) | uint16(text[i+1])<<8
		if f.first[start/64]&(1<<(start%64)) == 0 {
			continue
		}
		end := 0
		for _, one := range f.index[prefix(text[i:])] {
			if effort.left < 0 {
				return nil, false
			}
			if end = one.match(text, i, effort); end > 0 {
				break
			}
		}
		switch {
		case end == 0:
		case i < last.to:
			last.to = max(last.to, end)
		default:
			if last.to > 0 {
				found = append(found, span{at(last.from), at(last.to)})
			}
			last = span{i, end}
		}
	}
	if last.to > 0 {
		found = append(found, span{at(last.from), at(last.to)})
	}
	return found, true
}

// match returns the end of the pattern at i, 0 without a match.
func (p pattern) match(text string, i int, effort *effort) int {
	const step = 16
	end := i + len(p.text)
	if end > len(text) {
		effort.left--
		return 0
	}
	for from := 0; from < len(p.text); from += step {
		to := min(from+step, len(p.text))
		effort.left -= to - from
		if text[i+from:i+to] != p.text[from:to] {
			return 0
		}
	}
	if p.number && (i > 0 && digitAt(text, i-1) || digitAt(text, end)) {
		return 0
	}
	for p.padded && end < len(text) && text[end] == '=' {
		end++
	}
	return end
}

func digitAt(text string, i int) bool { return i < len(text) && '0' <= text[i] && text[i] <= '9' }

func prefix(text string) uint32 {
	return uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
}

// unescaped decodes the JSON escapes of a text. It also returns the place of each byte, and of the end, in the
// original text. Without any escape it returns nothing.
func unescaped(text string) (string, []int32) {
	if strings.IndexByte(text, '\\') < 0 {
		return "", nil
	}
	out := make([]byte, 0, len(text))
	starts := make([]int32, 0, len(text)+1)
	changed := false
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			starts = append(starts, int32(i))
			out = append(out, text[i])
			i++
			continue
		}
		before := len(out)
		var width int
		out, width = appendEscaped(out, text[i:])
		changed = changed || width > 1
		for range len(out) - before {
			starts = append(starts, int32(i))
		}
		i += width
	}
	if !changed {
		return "", nil
	}
	return string(out), append(starts, int32(len(text)))
}

// escapes are the escapes of one letter. The last is common but not JSON.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '\'': '\'',
}

// appendEscaped appends the decoded first character of a text and returns the length of its escape.
func appendEscaped(out []byte, text string) ([]byte, int) {
	if len(text) < 2 {
		return append(out, text[0]), 1
	}
	if c := escapes[text[1]]; c != 0 {
		return append(out, c), 2
	}
	r, ok := unicodeEscape(text)
	if !ok {
		return append(out, text[0]), 1
	}
	if utf16.IsSurrogate(r) {
		second, _ := unicodeEscape(text[6:])
		if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
			return utf8.AppendRune(out, both), 12
		}
	}
	return utf8.AppendRune(out, r), 6
}

func unicodeEscape(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}
