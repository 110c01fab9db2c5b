package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/pack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestThePackOfTheDemoIsSound: nothing is wrong with it by itself, and its orders
// go every way that it has.
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
