package carry

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// unfinished is what a file is called while it is written.
const unfinished = ".part"

// ExistsError says that a file is there already.
type ExistsError struct{ Path string }

// Error names it.
func (e *ExistsError) Error() string {
	return e.Path + " exists; nothing is written over it: choose another name"
}

// File is one that is being written. Its name is taken from the beginning, and what
// is written stands beside it until it is whole.
type File struct {
	path string
	file *os.File
	out  *bufio.Writer
	size int64
}

// Create begins a file that only its owner can read. The folder is made where it is
// missing. A file that is there already is an *ExistsError.
func Create(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	taken, err := create(path)
	if err != nil {
		return nil, err
	}
	if err := taken.Close(); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	part, err := create(path + unfinished)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &File{path: path, file: part, out: bufio.NewWriterSize(part, 64<<10)}, nil
}

func create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &ExistsError{path}
	}
	if err != nil {
		return nil, fmt.Errorf("create the file: %w", err)
	}
	return f, nil
}

// Write adds to the file.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	f.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("write %s: %w", f.path, err)
	}
	return n, nil
}

// WriteString adds a text to the file.
func (f *File) WriteString(text string) error {
	_, err := f.Write([]byte(text))
	return err
}

// Size is how many bytes were written.
func (f *File) Size() int64 { return f.size }

// Finish makes the file whole: it is on disk and has its name.
func (f *File) Finish() error {
	err := errors.Join(f.out.Flush(), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.path+unfinished, f.path)
	}
	if err != nil {
		return fmt.Errorf("finish %s: %w", f.path, errors.Join(err, f.remove()))
	}
	return nil
}

// Leave ends the file as it is, under a name that says it is not whole, which is
// returned. One in which nothing stands is removed, and the name is empty. What cannot
// be written any more is missing at its end, as it is not whole anyway.
func (f *File) Leave() string {
	_ = errors.Join(f.out.Flush(), f.file.Close(), os.Remove(f.path))
	if f.size == 0 {
		_ = os.Remove(f.path + unfinished) // Nothing stands in it that anybody could miss.
		return ""
	}
	return f.path + unfinished
}

func (f *File) remove() error {
	return errors.Join(os.Remove(f.path), os.Remove(f.path+unfinished))
}
