package keymap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnActionCanHaveOtherKeys(t *testing.T) {
	t.Parallel()
	m, err := New([]Change{{Freeze, []string{"f5", "ctrl+p"}}, {Slower, []string{"p"}}})
	require.NoError(t, err)
	action, _ := m.Lookup(InQueues, "f5")
	require.Equal(t, Freeze, action)
	action, _ = m.Lookup(InQueues, "p")
	require.Equal(t, Slower, action, "a key that is given up can be used by another")
	action, _ = m.Lookup(InQueues, "+")
	require.Equal(t, None, action)
	b, ok := m.Of(Freeze)
	require.True(t, ok)
	require.Equal(t, "f5 ^p", b.Show)
	action, _ = BuiltIn.Lookup(InQueues, "p")
	require.Equal(t, Freeze, action, "the table of the program is as it was")
}

func TestChangedKeysAreHeldToTheSameRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes []Change
		want    string
	}{
		"taken":            {[]Change{{Freeze, []string{"r"}}}, "the key r would mean both freeze and refresh"},
		"taken elsewhere":  {[]Change{{Acknowledge, []string{"W"}}}, "the key W would mean both why and acknowledge"},
		"hides a sequence": {[]Change{{Freeze, []string{"g"}}}, "the key g of freeze hides gg of top"},
		"hidden":           {[]Change{{Freeze, []string{"rr"}}}, "the key r of refresh hides rr of freeze"},
		"confirms": {
			[]Change{{Act, []string{"y"}}},
			"act cannot be on y: what acts is never on a key of the question",
		},
		"enter confirms": {[]Change{{Open, []string{"f2"}}, {Act, []string{"enter"}}}, "act cannot be on enter"},
		"control": {
			[]Change{{Act, []string{"ctrl+a"}}},
			"act cannot be on ^a: what acts is never on a control key",
		},
		"no way out":        {[]Change{{Back, []string{"b"}}}, "back keeps its keys"},
		"not an action":     {[]Change{{"dance", []string{"f2"}}}, "dance is not an action"},
		"two changes":       {[]Change{{Freeze, []string{"f3"}}, {Mute, []string{"f3"}}}, "f3 would mean both"},
		"the way out taken": {[]Change{{Mute, []string{"esc"}}}, "the key esc would mean both back and mute"},
	} {
		_, err := New(test.changes)
		require.ErrorContains(t, err, test.want, name)
	}
}

func TestKeysAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "a", "Z": "Z", "gg": "gg", "space": " ", "f12": "f12", "ctrl+k": "ctrl+k", "alt+k": "alt+k",
		"enter": "enter", "'": "'", "ä": "ä",
	} {
		key, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, key)
	}
	for text, want := range map[string]string{
		"ctrl+i": "sends it as tab", "ctrl+c": "always quits", "ab": "is not a key", "": "is not a key",
		"f13": "is not a key", "f01": "is not a key",
		"ctrl+1": "is not a key", "\x1b": "is not a key", "shift+k": "is not a key",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
	require.Equal(t, "space ^k ⇧tab k", Show([]string{" ", "ctrl+k", "shift+tab", "k"}))
}
