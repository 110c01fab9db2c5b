package proof

import (
	"flag"
	"os"
	"testing"

	"github.com/attune-go/attune/core/testkit"
)

// slow says that the long courses are wanted.
var slow = os.Getenv("ATTUNE_SLOW_TESTS") != ""

func TestMain(m *testing.M) {
	if raw := os.Getenv(childVariable); raw != "" {
		os.Exit(replica(raw))
	}
	flag.Parse()
	checks := "7"
	if slow {
		checks = "150"
	}
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	testkit.Main(m)
}
