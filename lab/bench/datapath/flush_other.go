//go:build !linux

package datapath

import "os"

// flush waits until the written data is on the disk.
func flush(file *os.File) error { return file.Sync() }
