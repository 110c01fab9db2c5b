package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// streams copies between the child's pipes and the caller's readers and writers. os/exec cannot do this, because the
// group must be killed between the end of the child and the end of its output.
type streams struct {
	user         *User
	ours, theirs []*os.File
	copies       []func()
	wg           sync.WaitGroup
}

// attach makes the pipes of an unstarted command. They belong to its user, so that it can also open them by name
// (/dev/stdin).
func attach(cmd *exec.Cmd, command Command) (*streams, error) {
	s := &streams{user: command.User}
	err := errors.Join(
		s.input(cmd, command.Stdin),
		s.output(&cmd.Stdout, command.Stdout),
		s.output(&cmd.Stderr, command.Stderr))
	if err != nil {
		s.abort()
		return nil, err
	}
	return s, nil
}

func (s *streams) input(cmd *exec.Cmd, from io.Reader) error {
	if from == nil {
		return nil // os/exec connects the null device
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs, s.ours = append(s.theirs, read), append(s.ours, write)
	if err := s.user.own(read); err != nil {
		return err
	}
	cmd.Stdin = read
	s.copies = append(s.copies, func() {
		_, _ = io.Copy(write, from) // a child need not read its input
		_ = write.Close()
	})
	return nil
}

func (s *streams) output(target *io.Writer, to io.Writer) error {
	if to == nil {
		return nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs, s.ours = append(s.theirs, write), append(s.ours, read)
	if err := s.user.own(write); err != nil {
		return err
	}
	*target = write
	s.copies = append(s.copies, func() {
		if _, err := io.Copy(to, read); err != nil {
			_, _ = io.Copy(io.Discard, read) // never let the child block on its output
		}
	})
	return nil
}

// started closes the child's ends in this process and begins to copy.
func (s *streams) started() {
	closeAll(s.theirs)
	for _, run := range s.copies {
		s.wg.Go(run)
	}
}

// finish waits for the rest of the output, up to drainLimit.
func (s *streams) finish() {
	timer := time.AfterFunc(drainLimit, func() { closeAll(s.ours) })
	// The input side ends at once: it has no reader any more.
	s.wg.Wait()
	timer.Stop()
	closeAll(s.ours)
}

func (s *streams) abort() {
	closeAll(s.theirs)
	closeAll(s.ours)
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // closed twice at worst
	}
}
