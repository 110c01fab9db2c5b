package phrase

import "strings"

// Nearest returns the candidate nearest to word, or "" if none is near: one within a third of the word's
// length in edits, or else the shortest with word as its prefix.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, candidate := range candidates {
		distance := Distance(word, candidate)
		if distance < bestDistance && distance < len(word) {
			best, bestDistance = candidate, distance
		}
	}
	if best != "" || len(word) < minPrefix {
		return best
	}
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, word) && (best == "" || len(candidate) < len(best)) {
			best = candidate
		}
	}
	return best
}

// DidYouMean is "; the nearest is …" for a near candidate, else empty.
func DidYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return "; the nearest is " + near
	}
	return ""
}

// minPrefix is the shortest word that is used as a prefix.
const minPrefix = 3

// Distance counts insertions, deletions, replacements and swaps of neighbours.
func Distance(a, b string) int {
	var before []int // the row above the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
