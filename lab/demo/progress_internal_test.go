package demo

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The start prints a line every two seconds, and nothing more after its end.
func TestTheStartIsNeverSilentForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		d := &Demo{cfg: Config{Out: out}}
		failed := errors.New("no disk")
		err := d.withProgress(t.Context(), "starting a server", 6*time.Second, func() error {
			time.Sleep(7 * time.Second)
			return failed
		})
		require.ErrorIs(t, err, failed)
		time.Sleep(10 * time.Second)
		require.Equal(t, "starting a server, usually 6 s\nstarting a server: 2 s, about 4 s left\n"+
			"starting a server: 4 s, about 2 s left\nstarting a server: 6 s\n", out.String())
	})
}
