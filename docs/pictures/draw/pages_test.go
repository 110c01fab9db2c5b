package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPagesShowPicturesThatExist: each picture that a page names is there, and one that it
// shows in the dark has its twin for a light page.
func TestPagesShowPicturesThatExist(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	named := regexp.MustCompile(`[\w./-]*pictures/[\w-]+\.svg`)
	shown := regexp.MustCompile(`srcset="([^"]+)\.svg">\s*<img alt="[^"]+" src="([^"]+)\.svg">`)
	twins := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, name := range named.FindAllString(string(text), -1) {
			require.FileExists(t, filepath.Join(filepath.Dir(page), name), "%s names it", page)
		}
		pairs := shown.FindAllStringSubmatch(string(text), -1)
		require.Len(t, pairs, strings.Count(string(text), "<picture>"), "%s shows each picture in two variants", page)
		for _, pair := range pairs {
			require.Equal(t, pair[1]+"-light", pair[2], page)
			twins++
		}
	}
	require.Positive(t, twins)
}
