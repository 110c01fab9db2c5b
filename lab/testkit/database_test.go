package testkit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/migrations"
)

// A template of yesterday lacks today's partitions: a run over midnight takes another one, and those of earlier
// days are dropped.
func TestTemplatesAreOfTheirDay(t *testing.T) {
	t.Parallel()
	before := time.Now()
	name, err := template(own)
	require.NoError(t, err)
	after := time.Now()
	require.Contains(t, []string{
		templatePrefix + migrations.Checksum() + "_" + day(before),
		templatePrefix + migrations.Checksum() + "_" + day(after),
	}, name)
	require.False(t, outlived(name))
	require.False(t, outlived(templatePrefix+"sum_"+day(before.Add(-24*time.Hour))),
		"a test may use it since before midnight")
	require.True(t, outlived(templatePrefix+"sum_"+day(before.Add(-72*time.Hour))))
	require.True(t, outlived(templatePrefix+"sum"), "one of no day at all")
	require.False(t, outlived("attune"))
}
