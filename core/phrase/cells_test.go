package phrase_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/phrase"
)

func TestColumnsAreMeasuredInCells(t *testing.T) {
	t.Parallel()
	got := phrase.Align("NAME\tCOUNT\tNOTE\n部署.服务\t1\tx\ncafe\u0301\t22\tlong\n👍\t333\ty\n\nlonger\t1\nshort\t2\n")
	lines := strings.Split(got, "\n")
	for i, want := range []string{
		"NAME       COUNT  NOTE", "部署.服务  1      x", "cafe\u0301       22     long", "👍         333    y", "",
	} {
		require.Equal(t, want, lines[i])
	}
	require.Equal(t, []string{"longer  1", "short   2", ""}, lines[5:])
	require.Equal(t, "one\ntwo", phrase.Align("one\ntwo"))
}
