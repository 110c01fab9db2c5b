package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// EnvProgram is the variable with the path of attune-executor, which `make` has built.
const EnvProgram = "ATTUNE_TEST_PROGRAM"

// Program returns the path of attune-executor, built without the race detector, which makes the start of each
// command six times as expensive. Without EnvProgram each test binary builds it once.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	return path
}

var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(EnvProgram); path != "" {
		return path, nil
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("attune-program-%d", os.Getuid()), "attune-executor")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path,
		"github.com/attune-go/attune/cmd/attune-executor")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build attune-executor: %w: %s", err, out)
	}
	return path, nil
})
