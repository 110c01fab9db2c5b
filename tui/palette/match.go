package palette

import (
	"slices"
	"strings"
	"unicode"
)

// match scores how well a text fits a word; -1 means not at all. The word must contain all letters in their order. A
// common beginning scores most, then beginnings of parts, then adjacent letters.
func match(typed, word string) int {
	typed, word = strings.ToLower(typed), strings.ToLower(word)
	switch {
	case typed == "":
		return 0
	case typed == word:
		return 10_000
	case strings.HasPrefix(word, typed):
		return 5_000 - min(len(word), 1000)
	}
	if at := strings.Index(word, typed); at >= 0 {
		score := 2_000 - min(at, 1000)
		if isStart(word, at) {
			score += 1_000
		}
		return score
	}
	return scattered([]rune(typed), []rune(word))
}

// scattered scores letters that are not adjacent.
func scattered(typed, word []rune) int {
	score, at, last := 500, 0, -2
	for i, r := range word {
		if at < len(typed) && r == typed[at] {
			if i == last+1 {
				score += 5
			}
			if i == 0 || !unicode.IsLetter(word[i-1]) && !unicode.IsDigit(word[i-1]) {
				score += 10
			}
			at, last = at+1, i
			continue
		}
		score--
	}
	if at < len(typed) {
		return -1
	}
	return max(score, 0)
}

// isStart reports whether a part of the word begins here.
func isStart(word string, at int) bool {
	return at == 0 || strings.ContainsRune(" ._-/:=", rune(word[at-1]))
}

// rank lists the matching words, best first.
func rank(typed string, words []string) []string {
	type scored struct {
		word  string
		score int
	}
	var found []scored
	for _, word := range words {
		if score := match(typed, word); score >= 0 {
			found = append(found, scored{word, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.word
	}
	return out
}
