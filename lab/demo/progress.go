package demo

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

// progressEvery is the longest time between two lines of output at the start of the demo.
const progressEvery = 2 * time.Second

// withProgress prints what do does, and every two seconds how long it has taken and how long it still
// takes. usually is its duration on a laptop.
func (d *Demo) withProgress(ctx context.Context, what string, usually time.Duration, do func() error) error {
	d.printf("%s, usually %.0f s", what, usually.Seconds())
	ctx, done := context.WithCancel(ctx)
	stopped := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(stopped)
		for supervise.Sleep(ctx, progressEvery) {
			took := time.Since(began)
			if left := usually - took; left >= time.Second {
				d.printf("%s: %.0f s, about %.0f s left", what, took.Seconds(), left.Seconds())
			} else {
				d.printf("%s: %.0f s", what, took.Seconds())
			}
		}
	}()
	err := do()
	done()
	<-stopped
	return err
}

// reportDisk prints how much data stays on the disk, and how to remove it.
func (d *Demo) reportDisk() {
	dir, bytes := d.stack.Dir(), int64(0)
	if d.stack.Moved() == "" {
		dir = d.cfg.Dir // the configured path, which is shorter
	}
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // unreadable files are not counted
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	d.printf("%d MB of data and logs stay for the next demo; remove them with: rm -rf %s", (bytes+500_000)/1_000_000,
		inShell(dir))
}
