package proof

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) {
	if raw := os.Getenv(childVariable); raw != "" {
		os.Exit(replica(raw))
	}
	flag.Parse()
	var err error
	if programDir, err = os.MkdirTemp("", "attune-proof-*"); err != nil {
		panic(err)
	}
	checks := "4"
	if testkit.Slow() {
		checks = "150"
	}
	if os.Getenv("RAPID_CHECKS") == "" {
		preset("rapid.checks", checks)
	}
	// These tests mostly wait for processes, so a few more of them than there are processors run at once.
	preset("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0))))
	testkit.Main(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(programDir) // the rest of a temporary folder does no harm
		os.Exit(code)
	}))
}

// preset sets a flag that was not given.
func preset(name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}
