package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	links      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings   = regexp.MustCompile(`^#+ (.*)`)
	linkTexts  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchors  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	elsewhere  = regexp.MustCompile(`^[a-z]+:`)
	fenceMarks = "```"
)

// anchors are those of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	found, fenced := map[string]bool{}, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, fenceMarks) {
			fenced = !fenced
		}
		m := headings.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || fenced {
			continue
		}
		name := noAnchors.ReplaceAllString(strings.ToLower(linkTexts.ReplaceAllString(m[1], "$1")), "")
		name = strings.ReplaceAll(strings.TrimSpace(name), " ", "-")
		unique := name
		for n := 1; found[unique]; n++ {
			unique = name + "-" + strconv.Itoa(n)
		}
		found[unique] = true
	}
	return found
}

// Every link of a page leads to a file, and to a heading of it; the index of docs names every page there.
func TestLinksOfPagesLead(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	require.NoError(t, err)
	for _, folder := range []string{"docs", "deploy", "lab"} {
		err = filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".md") {
				pages = append(pages, path)
			}
			return err
		})
		require.NoError(t, err)
	}
	require.Greater(t, len(pages), 50)
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	require.NoError(t, err)
	for _, from := range pages {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		if name := filepath.Base(from); filepath.Base(filepath.Dir(from)) == "docs" && name != "README.md" {
			require.Contains(t, string(index), "]("+name+")", "the index of the pages")
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			if elsewhere.MatchString(m[1]) {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			to := from
			if path != "" {
				to = filepath.Join(filepath.Dir(from), path)
			}
			target, err := os.Stat(to)
			require.NoError(t, err, "%s links to %s", from, m[1])
			if anchor != "" && !target.IsDir() {
				there, err := os.ReadFile(to)
				require.NoError(t, err)
				require.True(t, anchors(string(there))[anchor], "%s links to %s, which has no such heading", from, m[1])
			}
		}
	}
}
