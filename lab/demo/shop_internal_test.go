package demo

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The packs of the demo have no mistakes, and the orders use every branch of the workflows.
func TestThePackOfTheDemoIsSound(t *testing.T) {
	t.Parallel()
	files, err := catalog.Read([]string{"packs"}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Empty(t, files.Warnings)
	require.Empty(t, files.Skipped)
	require.Len(t, files.Set.Of(pack.KindWorkflow), 2)
	require.Len(t, files.Set.Of(pack.KindRule), 2)
	asked, refused := 0, 0
	for n := 1; n <= 22; n++ {
		if amount, ok := order(n)["amount"].(int); ok && amount > 900 {
			asked++
		}
		if n%11 == 0 {
			refused++
		}
	}
	require.Equal(t, 4, asked)
	require.Equal(t, 2, refused)
}

// A worker that reads a script during its replacement finds the old one or the new one.
func TestAFileIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "check.sh")
	contents := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<16)}
	require.NoError(t, replaceFile(path, []byte(contents[0])))
	replaced := make(chan error, 1)
	go func() {
		var err error
		for n := range 200 {
			err = errors.Join(err, replaceFile(path, []byte(contents[n%2])))
		}
		replaced <- err
	}()
	for {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, slices.Contains(contents, string(content)), "%d bytes", len(content))
		select {
		case err := <-replaced:
			require.NoError(t, err)
			return
		default:
		}
	}
}

// The shop places held orders later.
func TestHeldOrdersArePlacedLater(t *testing.T) {
	d, _ := fresh(t)
	requests := submit.New(d.store, nil)
	events := func() int { return testkit.Count(t, d.store, "select count(*) from event") }
	for _, held := range []bool{true, false} {
		d.holdOrders(held)
		placed, err := d.placeOrder(t.Context(), requests, 1)
		require.NoError(t, err)
		require.Equal(t, !held, placed)
	}
	require.Equal(t, 1, events())
}
