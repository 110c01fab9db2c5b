package pack

import (
	"math"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/yamldoc"
)

// read returns the value of a key as it is stored. It reports a mistake and returns false if it cannot.
type read func(r *reader, f yamldoc.Field) (any, bool)

// plain adapts a method of yamldoc.Reader.
func plain[T any](of func(*yamldoc.Reader, yamldoc.Field) (T, bool)) read {
	return func(r *reader, f yamldoc.Field) (any, bool) { return of(&r.Reader, f) }
}

var (
	readText   = plain((*yamldoc.Reader).Text)
	readBool   = plain((*yamldoc.Reader).Bool)
	readObject = plain((*yamldoc.Reader).Object)
)

func readTexts(r *reader, f yamldoc.Field) (any, bool) {
	texts, ok := r.Texts(f)
	return anyList(texts), ok
}

func readLowerTexts(r *reader, f yamldoc.Field) (any, bool) {
	texts, ok := r.Texts(f)
	for i, text := range texts {
		texts[i] = strings.ToLower(text)
	}
	return anyList(texts), ok
}

// readTextOrTexts treats a single text as a list with one text.
func readTextOrTexts(r *reader, f yamldoc.Field) (any, bool) {
	if f.Value.Kind == yaml.ScalarNode {
		text, ok := r.Text(f)
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

func readNumber(r *reader, f yamldoc.Field) (any, bool) {
	number, ok := r.Whole(f, 1, math.MaxInt32)
	return int(number), ok
}

// readSeconds reads a duration in the forms of policies.
func readSeconds(r *reader, f yamldoc.Field) (any, bool) {
	seconds, ok := r.Units(f, time.Second)
	return int(seconds), ok
}

func readCount(r *reader, f yamldoc.Field) (any, bool) {
	var number int64
	if f.Value.Kind != yaml.ScalarNode || f.Value.ShortTag() != "!!int" || f.Value.Decode(&number) != nil ||
		number < 0 || number > math.MaxInt32 {
		r.Mistakef(r.At(f.Value), "%s is %s; it must be a whole number of at least 0", f.Key.Value,
			yamldoc.Show(f.Value))
		return nil, false
	}
	return int(number), true
}

func readWord(allowed ...string) read {
	return func(r *reader, f yamldoc.Field) (any, bool) { return r.Word(f, allowed...) }
}

var readRetention = readWord("versions", "days", "hours", "minutes")

var version = regexp.MustCompile(`^\d+\.\d+\.\d+`)

func readVersion(r *reader, f yamldoc.Field) (any, bool) {
	text, ok := r.Text(f)
	if ok && !version.MatchString(text) {
		r.Mistakef(r.At(f.Value), "version is %s; it must have three parts, as in 1.0.0", yamldoc.Show(f.Value))
		return nil, false
	}
	return text, ok
}

// readPlacement reads a field that restricts workers, and checks it as placement does.
func readPlacement(of placement.Field) read {
	shape := readText
	switch of.Empty.(type) {
	case map[string]any:
		shape = readObject
	case []any:
		shape = readList
	}
	return func(r *reader, f yamldoc.Field) (any, bool) {
		value, ok := shape(r, f)
		if !ok {
			return nil, false
		}
		if err := of.Check(value); err != nil {
			r.Mistakef(r.At(f.Value), "%s: %v", f.Key.Value, err)
			return nil, false
		}
		return value, true
	}
}

func readList(r *reader, f yamldoc.Field) (any, bool) {
	if f.Value.Kind != yaml.SequenceNode {
		r.Mistakef(r.At(f.Value), "%s is %s; it must be a list", f.Key.Value, yamldoc.Show(f.Value))
		return nil, false
	}
	return readAny(r, f)
}

func readAny(r *reader, f yamldoc.Field) (any, bool) {
	before := len(r.Mistakes)
	value := r.Value(f.Value)
	return value, len(r.Mistakes) == before
}
