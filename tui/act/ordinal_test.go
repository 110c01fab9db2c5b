package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/act"
)

func TestPlacesInARowAreWritten(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		require.Equal(t, want, act.Ordinal(n))
	}
}
