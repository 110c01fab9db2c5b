package filter

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// maxRepeat is the largest repetition of PostgreSQL.
const maxRepeat = 255

// errExpression is an expression that PostgreSQL does not support.
var errExpression = errors.New("the database does not know this expression")

// expression translates a regular expression of Go for PostgreSQL. Both ignore case.
func expression(source string) (string, error) {
	parsed, err := syntax.Parse("(?i)"+source, syntax.Perl)
	if err != nil {
		return "", errExpression
	}
	var b strings.Builder
	if err := write(&b, parsed); err != nil {
		return "", err
	}
	return b.String(), nil
}

// signs are expressions of one token.
var signs = map[syntax.Op]string{
	syntax.OpEmptyMatch: "(?:)", syntax.OpAnyChar: ".", syntax.OpAnyCharNotNL: ".", syntax.OpBeginText: "^",
	syntax.OpBeginLine: "^",
	syntax.OpEndText:   "$", syntax.OpEndLine: "$", syntax.OpWordBoundary: `\y`, syntax.OpNoWordBoundary: `\Y`,
}

// repeats are the suffixes of repetitions.
var repeats = map[syntax.Op]string{syntax.OpStar: "*", syntax.OpPlus: "+", syntax.OpQuest: "?"}

func write(b *strings.Builder, re *syntax.Regexp) error {
	if sign, ok := signs[re.Op]; ok {
		b.WriteString(sign)
		return nil
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			fmt.Fprintf(b, `\U%08x`, r)
		}
		return nil
	case syntax.OpCharClass:
		b.WriteByte('[')
		for i := 0; i+1 < len(re.Rune); i += 2 {
			fmt.Fprintf(b, `\U%08x-\U%08x`, max(re.Rune[i], 1), max(re.Rune[i+1], 1))
		}
		b.WriteByte(']')
		if len(re.Rune) == 0 {
			return errExpression
		}
		return nil
	case syntax.OpCapture, syntax.OpConcat:
		return group(b, re.Sub, "")
	case syntax.OpAlternate:
		return group(b, re.Sub, "|")
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		err := group(b, re.Sub, "")
		b.WriteString(repeats[re.Op])
		return err
	case syntax.OpRepeat:
		if re.Max > maxRepeat || re.Min > maxRepeat {
			return errExpression
		}
		err := group(b, re.Sub, "")
		if re.Max < 0 {
			fmt.Fprintf(b, "{%d,}", re.Min)
		} else {
			fmt.Fprintf(b, "{%d,%d}", re.Min, re.Max)
		}
		return err
	default:
		return errExpression
	}
}

// group joins parts to one group.
func group(b *strings.Builder, parts []*syntax.Regexp, between string) error {
	b.WriteString("(?:")
	for i, part := range parts {
		if i > 0 {
			b.WriteString(between)
		}
		if err := write(b, part); err != nil {
			return err
		}
	}
	b.WriteByte(')')
	return nil
}
