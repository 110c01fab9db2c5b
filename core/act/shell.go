package act

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/attune-go/attune/core/phrase"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// Shell quotes arguments for a shell. It escapes characters that control a terminal, as bash and zsh read them, so
// that the line can be pasted.
func Shell(argv ...string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = shellWord(strings.ToValidUTF8(arg, "\uFFFD"))
	}
	return strings.Join(words, " ")
}

func shellWord(arg string) string {
	switch {
	case plainWord.MatchString(arg):
		return arg
	case strings.IndexFunc(arg, phrase.Steers) < 0:
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, r := range arg {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case !phrase.Steers(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return "$'" + b.String() + "'"
}
