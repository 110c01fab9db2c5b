package datapath

import (
	"os"
	"syscall"
)

// flush waits until the written data is on the disk.
func flush(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
