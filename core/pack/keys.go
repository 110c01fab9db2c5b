package pack

import (
	"math"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/placement"
)

// What keys hold, as it is stored. Each reports what it cannot use.

func readText(r *reader, f field) (any, bool) {
	var text string
	ok := r.text(f, &text)
	return text, ok
}

func readTexts(r *reader, f field) (any, bool) {
	var texts []string
	ok := r.texts(f, &texts)
	return anyList(texts), ok
}

func readLowerTexts(r *reader, f field) (any, bool) {
	var texts []string
	ok := r.texts(f, &texts)
	for i, text := range texts {
		texts[i] = strings.ToLower(text)
	}
	return anyList(texts), ok
}

// readTextOrTexts also takes a single text for a list of one.
func readTextOrTexts(r *reader, f field) (any, bool) {
	if f.value.Kind == yaml.ScalarNode {
		text, ok := readText(r, f)
		return []any{text}, ok
	}
	return readTexts(r, f)
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

func readBool(r *reader, f field) (any, bool) {
	var yes bool
	if f.value.Kind != yaml.ScalarNode || f.value.ShortTag() != "!!bool" || f.value.Decode(&yes) != nil {
		r.mistakef(r.at(f.value), "%s is %s; it must be true or false", f.key.Value, show(f.value))
		return nil, false
	}
	return yes, true
}

func readNumber(r *reader, f field) (any, bool) {
	var number int32
	ok := r.number(f, &number)
	return int(number), ok
}

// readSeconds takes what policies take for a duration.
func readSeconds(r *reader, f field) (any, bool) {
	var seconds int32
	ok := r.duration(f, time.Second, &seconds)
	return int(seconds), ok
}

// readCount is a number that may be 0.
func readCount(r *reader, f field) (any, bool) {
	var number int64
	if f.value.Kind != yaml.ScalarNode || f.value.ShortTag() != "!!int" || f.value.Decode(&number) != nil ||
		number < 0 || number > math.MaxInt32 {
		r.mistakef(r.at(f.value), "%s is %s; it must be a whole number of at least 0", f.key.Value, show(f.value))
		return nil, false
	}
	return int(number), true
}

func readWord(allowed ...string) func(*reader, field) (any, bool) {
	return func(r *reader, f field) (any, bool) {
		var word string
		ok := oneOf(r, f, &word, allowed...)
		return word, ok
	}
}

var readRetention = readWord("versions", "days", "hours", "minutes")

var version = regexp.MustCompile(`^\d+\.\d+\.\d+`)

func readVersion(r *reader, f field) (any, bool) {
	var text string
	if !r.text(f, &text) {
		return nil, false
	}
	if !version.MatchString(text) {
		r.mistakef(r.at(f.value), "version is %s; it must have three parts, as in 1.0.0", show(f.value))
		return nil, false
	}
	return text, true
}

// readConstraint is what versions of a runtime are held against.
func readConstraint(r *reader, f field) (any, bool) {
	var text string
	if !r.text(f, &text) {
		return nil, false
	}
	if _, err := placement.ParseConstraint(text); err != nil {
		r.mistakef(r.at(f.value), "%s is %s; it must be a constraint, as in >=3.9", f.key.Value, show(f.value))
		return nil, false
	}
	return text, true
}

func readObject(r *reader, f field) (any, bool) {
	if f.value.Kind != yaml.MappingNode {
		r.mistakef(r.at(f.value), "%s is %s; it must be a mapping", f.key.Value, show(f.value))
		return nil, false
	}
	return r.json(f.value)
}

func readList(r *reader, f field) (any, bool) {
	if f.value.Kind != yaml.SequenceNode {
		r.mistakef(r.at(f.value), "%s is %s; it must be a list", f.key.Value, show(f.value))
		return nil, false
	}
	return r.json(f.value)
}

func readAny(r *reader, f field) (any, bool) { return r.json(f.value) }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
