package datapath

import (
	"os"
	"syscall"
)

// flush waits until what was written is on the disk.
func flush(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
