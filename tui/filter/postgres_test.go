package filter

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestTheDatabaseReadsExpressionsAsWeDo(t *testing.T) {
	st := testkit.Store(t)
	texts := []string{
		"core.http_request", "etl.load", "ETL.LOAD", "Straße", "a{b}", "x-y", "", "aaa", "tab\there",
		`back\slash`,
	}
	for _, source := range []string{
		`^etl\.`, `load$`, `a|b`, `[a-c]+`, `[^a-z]`, `\d`, `a{2,3}`, `(?:core|mail)\.\w+`, `e*?l`, `\bload\b`, `ß`,
		`a\{b`, `[]x-]`, `\s`, `^$`, `.*`, `(?i)LOAD`, `[[:upper:]]`, `\\`, `\pL{6}`,
	} {
		written, err := expression(source)
		require.NoError(t, err, source)
		ours := regexp.MustCompile("(?i)" + source)
		for _, text := range texts {
			var theirs bool
			require.NoError(t,
				st.Pool().QueryRow(t.Context(), `select $1::text ~* $2::text`, text, written).Scan(&theirs), source)
			require.Equal(t, ours.MatchString(text), theirs, "%q in %q, written %s", source, text, written)
		}
	}
	for _, value := range []string{"core.*", "a{b}", "x-y", `back\slash`, "*", "e*d"} {
		var theirs bool
		for _, text := range texts {
			for _, within := range []bool{true, false} {
				require.NoError(t, st.Pool().QueryRow(t.Context(), `select $1::text ~* $2::text`, text,
					Pattern(value, within)).Scan(&theirs), value)
				require.Equal(t, regexp.MustCompile("(?is)"+Pattern(value, within)).MatchString(text), theirs,
					"%q in %q", value, text)
			}
		}
	}
}
