package export

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// partSuffix is the suffix of a file that is still being written.
const partSuffix = ".part"

// ExistsError is a file that must not be overwritten.
type ExistsError struct{ Path string }

// Error names it.
func (e *ExistsError) Error() string {
	return e.Path + " exists; nothing is written over it: choose another name"
}

// file is being written. An empty file reserves its name, and the contents stand beside it until they are complete.
type file struct {
	path string
	part *os.File
	out  *bufio.Writer
	size int64
}

// create begins a file with mode 0600, and makes its folder. An existing file is an *ExistsError.
func create(path string) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	reserved, err := openNew(path)
	if err != nil {
		return nil, err
	}
	if err := reserved.Close(); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	part, err := openNew(path + partSuffix)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &file{path: path, part: part, out: bufio.NewWriterSize(part, 64<<10)}, nil
}

func openNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &ExistsError{path}
	}
	if err != nil {
		return nil, fmt.Errorf("create the file: %w", err)
	}
	return f, nil
}

func (f *file) write(text string) error {
	n, err := f.out.WriteString(text)
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// finish syncs the complete file to disk and gives it its name.
func (f *file) finish() error {
	err := errors.Join(f.out.Flush(), f.part.Sync(), f.part.Close())
	if err == nil {
		err = os.Rename(f.path+partSuffix, f.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.path), os.Remove(f.path+partSuffix))
		return fmt.Errorf("finish %s: %w", f.path, err)
	}
	return nil
}

// abandon keeps the incomplete file under its .part name and returns that. An empty one is removed, and the name is
// empty. Errors are ignored: the file is incomplete in any case.
func (f *file) abandon() string {
	_ = errors.Join(f.out.Flush(), f.part.Close(), os.Remove(f.path))
	if f.size == 0 {
		_ = os.Remove(f.path + partSuffix)
		return ""
	}
	return f.path + partSuffix
}
