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

// distance is the number of letters to change, add, remove or swap.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
