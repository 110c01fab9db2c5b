package filter

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
)

// The terms are added to the filter of the database one by one. A term that the database does not support is an
// *Error.

// alternatives makes a filter of the database for every alternative of a query. The first one refers to the others.
func alternatives[F any](q *Query, add func(f *F, t Term) error, or func(f *F) *[]F) (first F, _ error) {
	if q.Empty() {
		return first, nil
	}
	list := make([]F, len(q.Any))
	for i, terms := range q.Any {
		for _, t := range terms {
			if err := add(&list[i], t); err != nil {
				return first, err
			}
		}
	}
	*or(&list[0]) = list[1:]
	return list[0], nil
}

// numbers reports whether all values are numbers: then the text is an id.
func (t *Term) numbers() bool {
	return t.Regex == nil && !slices.ContainsFunc(t.Values, func(v string) bool { return v == "" || !isNumber(v) })
}

// addText adds ids if all values are numbers, else a pattern.
func addText(t Term, ids *[]int64, match, unmatch *[]string) error {
	if t.numbers() {
		return addIDs(t, ids)
	}
	return addPattern(t, match, unmatch)
}

// addPattern adds the values as one regular expression.
func addPattern(t Term, match, unmatch *[]string) error {
	parts := make([]string, len(t.Values))
	for i, v := range t.Values {
		parts[i] = Pattern(v, t.Kind == Within)
		if t.Regex != nil {
			written, err := expression(v)
			if err != nil {
				return fail(t.Span, "%s", err)
			}
			parts[i] = written
		}
	}
	into := match
	if t.Not {
		into = unmatch
	}
	*into = append(*into, strings.Join(parts, "|"))
	return nil
}

// narrowed removes words that earlier terms left. Empty before means all words; an empty result is an
// error, since it would match all.
func narrowed[W ~string](t Term, words, before []W) ([]W, error) {
	var left []W
	for _, word := range words {
		if slices.Contains(t.Values, string(word)) != t.Not && (len(before) == 0 || slices.Contains(before, word)) {
			left = append(left, word)
		}
	}
	if len(left) == 0 {
		return nil, fail(t.Span, "no %s is left", t.Field)
	}
	return left, nil
}

// addParent adds one parent, or whether there is one.
func addParent(t Term, parent *int64, parented *string) error {
	if *parent != 0 || *parented != "" {
		return fail(t.Span, "one parent: term at once")
	}
	word := t.Values[0]
	if len(t.Values) == 1 && (word == monitor.ParentedAny || word == monitor.ParentedNone) {
		*parented = word
		if t.Not {
			*parented = map[string]string{
				monitor.ParentedAny:  monitor.ParentedNone,
				monitor.ParentedNone: monitor.ParentedAny,
			}[word]
		}
		return nil
	}
	id, err := strconv.ParseInt(word, 10, 64)
	if err != nil || id < 1 || len(t.Values) > 1 || t.Not {
		return fail(t.Span, "parent: takes one execution, any or none")
	}
	*parent = id
	return nil
}

func addIDs(t Term, ids *[]int64) error {
	if t.Not || len(*ids) > 0 {
		return fail(t.Span, "one list of ids at once, and not turned around")
	}
	for _, v := range t.Values {
		id, last, ok := idRange(v)
		if !ok {
			return fail(t.Span, "%q is no id", v)
		}
		if id != last {
			return fail(t.Span, "a range of ids stands alone, and only executions have one")
		}
		*ids = append(*ids, id)
	}
	return nil
}

// addAge narrows a range of ages. "Not younger" means older.
func addAge(t Term, low, high *time.Duration) {
	age := time.Duration(t.Number * float64(time.Second))
	if younger := t.Op == Less || t.Op == LessEqual; younger != t.Not {
		if *high == 0 || age < *high {
			*high = age
		}
		return
	}
	*low = max(*low, age)
}

// addCount narrows a range of numbers.
func addCount(t Term, least *int64, most **int64) error {
	n, op := int64(t.Number), t.Op
	if t.Not {
		turned := map[Op]Op{Less: MoreEqual, LessEqual: More, More: LessEqual, MoreEqual: Less}
		if op == Is {
			return fail(t.Span, "write %s<%d | %s>%d", t.Field, n, t.Field, n)
		}
		op = turned[op]
	}
	low, high := int64(0), monitor.NoLimit
	switch op {
	case Less:
		high = n - 1
	case LessEqual:
		high = n
	case More:
		low = n + 1
	case MoreEqual:
		low = n
	default:
		low, high = n, n
	}
	*least = max(*least, low)
	if *most == nil || high < **most {
		*most = &high
	}
	return nil
}
