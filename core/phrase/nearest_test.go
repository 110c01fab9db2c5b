package phrase_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/phrase"
)

// A wrong suggestion is worse than none: only likely typing mistakes have one.
func TestOf(t *testing.T) {
	t.Parallel()
	keys := []string{
		"ref", "name", "pack", "kind", "core", "threshold", "latency_ms", "queue_timeout", "core.echo",
		"core.sleep",
	}
	for word, want := range map[string]string{
		"thresold": "threshold", "Threshold": "threshold", "queue_timout": "queue_timeout", "core.ecko": "core.echo",
		"core.slee": "core.sleep", "rf": "ref", "reff": "ref", "nam": "name", "depack": "pack", "cor": "core",
		"nmae": "name", "rfe": "ref", "thresh": "threshold",
		"foo": "", "nope": "", "x": "", "": "", "bar": "", "core.nothing": "", "mine.other": "",
	} {
		require.Equal(t, want, phrase.Nearest(word, keys), word)
	}
}
