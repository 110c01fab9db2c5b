package demo

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

// progressEvery is how long the start of the demo is silent at most.
const progressEvery = 2 * time.Second

// patiently says what is done, and again every two seconds for how long, until it is
// done. usually is how long that takes on a laptop.
func (d *Demo) patiently(ctx context.Context, what string, usually time.Duration, do func() error) error {
	d.sayf("%s, usually %.0f s", what, usually.Seconds())
	ctx, done := context.WithCancel(ctx)
	told := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(told)
		for supervise.Sleep(ctx, progressEvery) {
			took := time.Since(began)
			if left := usually - took; left >= time.Second {
				d.sayf("%s: %.0f s, about %.0f s left", what, took.Seconds(), left.Seconds())
			} else {
				d.sayf("%s: %.0f s", what, took.Seconds())
			}
		}
	}()
	err := do()
	done()
	<-told
	return err
}

// left says what stays on the disk, and how it is removed.
func (d *Demo) left() {
	dir, bytes := d.stack.Dir(), int64(0)
	if d.stack.Moved() == "" {
		dir = d.cfg.Dir // as it was asked for, which is shorter
	}
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	d.sayf("%d MB of data and logs stay for the next demo; remove them with: rm -rf %s", (bytes+500_000)/1_000_000,
		inShell(dir))
}
