package carry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/attune-go/attune/core/terminal"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// Shell writes arguments as a line for a shell, each of them one argument whatever
// it holds. A character that a terminal would act upon when the line is pasted is
// written as an escape of bash and zsh.
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
	case strings.IndexFunc(arg, terminal.Steers) < 0:
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, r := range arg {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case !terminal.Steers(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return "$'" + b.String() + "'"
}

// Query is the line that asks a database for rows of a table. The address stands in
// the environment, so that no password is in the line.
func Query(schema, table, where string) string {
	if schema != "" {
		table = schema + "." + table
	}
	return `psql "$ATTUNE__DATABASE__URL" -x -c ` + shellWord("SELECT * FROM "+table+" WHERE "+where)
}
