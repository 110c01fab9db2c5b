package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo runs the commands of the tutorial.
func TestTheTutorialShowsTheCommandsOfTheDemo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial-triage.md"))
	require.NoError(t, err)
	var shown []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(string(page), -1) {
		shown = append(shown, strings.ReplaceAll(block[1], " \\\n  ", " "))
	}
	require.Equal(t, triageCommands, shown)
}

// The demo reports groups of dead letters that were decided otherwise than in the tutorial.
func TestOtherDecisionsAreReported(t *testing.T) {
	t.Parallel()
	right := map[string]map[string]int{
		groupMirror: {"requeued": 15}, groupPrint: {"requeued": 15}, groupFax: {"discarded": 15},
		groupBroken: {"discarded": 15},
	}
	require.Empty(t, misjudged(right))
	require.Len(t, misjudged(map[string]map[string]int{}), 4)
	right[groupPrint] = map[string]int{"requeued": 14, "discarded": 1}
	require.Equal(t, []string{`1 dead letters of the group print were decided as "discarded", not requeued`},
		misjudged(right))
}

// Every incident to practise has a section in docs/incidents.md.
func TestEveryPracticeHasASection(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "incidents.md"))
	require.NoError(t, err)
	var sections []string
	for _, heading := range regexp.MustCompile("(?m)^## `(.*)`$").FindAllStringSubmatch(string(page), -1) {
		sections = append(sections, heading[1])
	}
	require.ElementsMatch(t, Practices(), sections)
}
