package keymap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTableKeepsItsOwnRules(t *testing.T) {
	t.Parallel()
	require.NoError(t, Check(Table))
}

func TestEveryBindingIsComplete(t *testing.T) {
	t.Parallel()
	type place struct {
		action Action
		scope  Scope
	}
	seen := map[place]bool{}
	for _, b := range Table {
		require.NotEmpty(t, b.Keys, b.Action)
		require.NotEmpty(t, b.Show, b.Action)
		require.NotEmpty(t, b.Help, b.Action)
		require.NotEmpty(t, b.Group, b.Action)
		require.NotEmpty(t, b.Scopes, b.Action)
		for _, scope := range b.Scopes {
			require.False(t, seen[place{b.Action, scope}], "%s is bound twice", b.Action)
			seen[place{b.Action, scope}] = true
		}
		if b.Short != "" {
			require.Positive(t, b.Rank, b.Action)
		}
	}
}

func TestUpperCaseIsKeptForMovesThatAreStandard(t *testing.T) {
	t.Parallel()
	for _, b := range Table {
		for _, key := range b.Keys {
			if len(key) == 1 && strings.ToLower(key) != key {
				require.Contains(t, []string{"G", "A", "R", "D", "P", "L", "W", "V", "S", "M", "N", "U"}, key,
					"upper case is kept for acting, the log, and what is standard")
			}
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	action, prefix := BuiltIn.Lookup(InQueues, "g")
	require.Equal(t, None, action)
	require.True(t, prefix)
	action, prefix = BuiltIn.Lookup(InQueues, "gg")
	require.Equal(t, Top, action)
	require.False(t, prefix)
	action, _ = BuiltIn.Lookup(InQueues, "s")
	require.Equal(t, Sort, action)
	action, prefix = BuiltIn.Lookup(InExecution, "s")
	require.Equal(t, None, action, "sort does not work inside one execution")
	require.False(t, prefix)
}

func TestBottomLineNamesAtMostNine(t *testing.T) {
	t.Parallel()
	for _, scope := range Scopes {
		line := BuiltIn.BottomLine(scope, nil)
		require.LessOrEqual(t, len(line), 9, scope)
		require.NotEmpty(t, line, scope)
		for i := 1; i < len(line); i++ {
			require.LessOrEqual(t, line[i-1].Rank, line[i].Rank, scope)
		}
		require.Equal(t, Help, line[len(line)-1].Action, "%s: the way to all other keys is never left out", scope)
	}
}

func TestKeysThatActAreNamedOnlyWhereActingIsAllowed(t *testing.T) {
	t.Parallel()
	for _, b := range BuiltIn.BottomLine(InQueues, func(b Binding) bool { return !b.Acts }) {
		require.False(t, b.Acts, b.Action)
	}
	require.Equal(t, Act, BuiltIn.BottomLine(InQueues, nil)[1].Action, "it is among the first")
}

func TestInADialogOneKeyHasOneMeaning(t *testing.T) {
	t.Parallel()
	for _, scope := range DialogScopes {
		meaning := map[string]Action{}
		for _, b := range BuiltIn.For(scope) {
			require.Equal(t, GroupDialog, b.Group, "only its own keys work: %s", b.Action)
			for _, key := range b.Keys {
				require.NotContains(t, meaning, key, "%s in %s", key, scope)
				meaning[key] = b.Action
			}
		}
		require.NotEmpty(t, meaning, scope)
		require.Contains(t, []Action{Back, Hide}, meaning["esc"], scope)
		if scope == InForm || scope == InTyping {
			for key := range meaning {
				require.NotEqual(t, 1, len(key), "%q cannot be typed in %s", key, scope)
			}
		}
	}
}

func TestTheKeyThatConfirmsIsNotTheOneThatActs(t *testing.T) {
	t.Parallel()
	action, _ := BuiltIn.Lookup(InConfirm, "A")
	require.Equal(t, None, action)
	action, _ = BuiltIn.Lookup(InQueues, "y")
	require.NotEqual(t, Act, action)
	action, _ = BuiltIn.Lookup(InConfirm, "y")
	require.Equal(t, Yes, action)
	action, _ = BuiltIn.Lookup(InTyping, "y")
	require.Equal(t, None, action, "it is a letter there")
}
