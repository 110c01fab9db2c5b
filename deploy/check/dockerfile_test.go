package check

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// image is a target of the Dockerfile.
type image struct {
	user                        string
	entrypoint, command, health []string
}

// dockerfile reads the targets of the Dockerfile with the instructions that they inherit.
func dockerfile(t *testing.T) map[string]*image {
	t.Helper()
	images := map[string]*image{}
	current := &image{}
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		list := func() (words []string) {
			_, after, found := strings.Cut(rest, "[")
			require.True(t, found, line)
			require.NoError(t, json.Unmarshal([]byte("["+after), &words), line)
			return words
		}
		switch instruction {
		case "FROM":
			parts := regexp.MustCompile(`(\S+) AS (\S+)$`).FindStringSubmatch(rest)
			require.NotNil(t, parts, line)
			current = &image{}
			if base := images[parts[1]]; base != nil {
				*current = *base
			}
			images[parts[2]] = current
		case "USER":
			current.user = strings.TrimSpace(rest)
		case "ENTRYPOINT":
			current.entrypoint = list()
		case "CMD":
			current.command = list()
		case "HEALTHCHECK":
			current.health = list()
		}
	}
	return images
}

// TestImages have a numeric user other than root, by which Kubernetes accepts them, a command and a health check.
func TestImages(t *testing.T) {
	t.Parallel()
	images := dockerfile(t)
	for _, name := range []string{"executor", "worker-shell", "worker-python", "worker-node"} {
		require.Contains(t, images, name)
		require.Equal(t, "10001:10001", images[name].user, name)
		require.NotEmpty(t, images[name].entrypoint, name)
		require.NotEmpty(t, images[name].command, name)
		require.Equal(t, []string{"attune-executor", "health"}, images[name].health[:2], name)
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	require.Contains(t, read(t, "Dockerfile"), "=golang:"+wanted[1]+"-", "the version of go.mod")
}
