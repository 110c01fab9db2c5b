//go:build !linux

package process

import (
	"errors"
	"fmt"
	"syscall"
)

// attributes make the child the leader of a group.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Shield fails on this platform.
func Shield() error {
	return fmt.Errorf("protect the memory of this process: %w", errors.ErrUnsupported)
}
