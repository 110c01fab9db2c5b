package keymap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// named spells named keys for people.
var named = map[string]string{
	"enter": "enter", "esc": "esc", "tab": "tab", "shift+tab": "⇧tab", "backspace": "bksp", "delete": "del",
	"insert": "ins",
	"up":     "↑", "down": "↓", "left": "←", "right": "→", "home": "home", "end": "end", "pgup": "pgup",
	"pgdown": "pgdn", " ": "space",
}

// alike are control keys that a terminal sends as another key or keeps for itself.
var alike = map[string]string{
	"ctrl+i": "the terminal sends it as tab", "ctrl+m": "the terminal sends it as enter",
	"ctrl+[": "the terminal sends it as esc",
	"ctrl+h": "many terminals send it as backspace", "ctrl+@": "it is not distinguishable",
	"ctrl+s": "many terminals stop their output with it",
	"ctrl+q": "many terminals resume their output with it", "ctrl+z": "terminals suspend programs with it",
	"ctrl+c": "it always quits",
	"ctrl+j": "many terminals send it as enter",
}

// Parse reads a key from the settings: a character, a doubled one, a name such as enter, pgdown or space, f1 to f12,
// ctrl+ and a letter, or alt+ and a character.
func Parse(text string) (string, error) {
	if text == "space" {
		return " ", nil
	}
	if _, ok := named[text]; ok {
		return text, nil
	}
	if why, ok := alike[text]; ok {
		return "", fmt.Errorf("the key %s cannot be used: %s", text, why)
	}
	if letter, ok := strings.CutPrefix(text, "ctrl+"); ok && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z' {
		return text, nil
	}
	if rest, ok := strings.CutPrefix(text, "alt+"); ok && isCharacter(rest) {
		return text, nil
	}
	if number, ok := strings.CutPrefix(text, "f"); ok && number != "" {
		if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= 12 && !strings.HasPrefix(number, "0") {
			return text, nil
		}
	}
	if isCharacter(text) || isSequence(text) && isCharacter(text[:1]) {
		return text, nil
	}
	return "", fmt.Errorf("%q is not a key: write a character, gg, enter, space, pgdown, f1, ctrl+k or alt+k", text)
}

func isCharacter(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return size == len(text) && r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r)
}

func spell(key string) string {
	if name, ok := named[key]; ok {
		return name
	}
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return "^" + letter
	}
	return key
}

// Show writes keys for people.
func Show(keys []string) string {
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = spell(key)
	}
	return strings.Join(slices.Compact(parts), " ")
}
