//go:build !linux

package datapath

import "os"

// flush waits until what was written is on the disk.
func flush(file *os.File) error { return file.Sync() }
