package carry

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"time"
)

// Part is one file of an archive.
type Part struct {
	Name string
	Body string
}

// Archive writes parts into one compressed archive, whole or not at all, and says
// how many bytes it has. In it they stand in a folder.
func Archive(path, folder string, at time.Time, parts []Part) (int64, error) {
	f, err := Create(path)
	if err != nil {
		return 0, err
	}
	if err := pack(f, folder, at, parts); err != nil {
		return 0, fmt.Errorf("write %s: %w", path, joinRemove(f, err))
	}
	return f.Size(), f.Finish()
}

func joinRemove(f *File, err error) error {
	_ = f.file.Close() // It is removed.
	if gone := f.remove(); gone != nil {
		return fmt.Errorf("%w; %w", err, gone)
	}
	return err
}

func pack(f *File, folder string, at time.Time, parts []Part) error {
	packed := gzip.NewWriter(f)
	archive := tar.NewWriter(packed)
	for _, part := range parts {
		header := &tar.Header{Name: folder + "/" + part.Name, Mode: 0o600, Size: int64(len(part.Body)), ModTime: at, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write([]byte(part.Body)); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}
