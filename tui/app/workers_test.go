package app

import (
	"fmt"
	"testing"
)

// The selected worker is described as the engine sees it.
func TestGoldenFramesOfOneWorker(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		name := fmt.Sprintf("worker_row_%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := started(t, sample(), size[0], size[1])
			b.press("4", "j")
			requireGolden(t, name, b.View())
		})
	}
}
