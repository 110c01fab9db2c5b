package workflow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// The log shows the values behind a condition that is false, cut short and without secrets.
func TestOperandsOfAFalseCondition(t *testing.T) {
	t.Parallel()
	secret := map[string]any{expr.Secret: true}
	scope := expr.Names{
		"n": int64(1), "o": map[string]any{"a": strings.Repeat("x", 100), "s": secret, "list": []any{secret}},
		"keystore": map[string]any{"k": "hidden"}, "config": map[string]any{"k": "hidden"},
	}
	for source, want := range map[string]string{
		"{{ n > 1 and o.a == n }}":         `: n is 1, o.a is "` + strings.Repeat("x", 39) + "…",
		"{{ o.s == 1 or o.list == 2 }}":    ": o.s is (secret), o.list is (secret)",
		"{{ keystore.k == config['k'] }}":  ": keystore.k is (secret), config.k is (secret)",
		"{{ not n }}":                      ": n is 1",
		"{{ o.none == 1 and n == 2 }}":     ": n is 1",
		"{{ o.a }}":                        "",
		"{{ 1 == 2 }}":                     "",
		"{{ length(keystore) == 7 + n }}":  ": keystore is (secret), n is 1",
		"{{ [n, n][0] == 3 and n in [] }}": ": n is 1",
	} {
		condition, err := NewCondition(source)
		require.NoError(t, err)
		require.Equal(t, want, condition.operands(scope), source)
	}
}
