package redrive

import (
	"os"
	"strings"
	"time"
)

// SpoolState is what is to be known of the spool before something is removed.
type SpoolState struct {
	// Folder is where copies lie; empty where none is known.
	Folder string `json:"folder"`
	// On says that copies are written, Sealed that they are sealed, with the key in
	// the file Key, whose name is KeyName.
	On      bool   `json:"on"`
	Sealed  bool   `json:"sealed"`
	Key     string `json:"key,omitempty"`
	KeyName string `json:"key_name,omitempty"`
	// Problem says why the key cannot be used; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Operations and Bytes are what lies there, the oldest from Oldest on.
	Operations int       `json:"operations"`
	Bytes      int64     `json:"bytes"`
	Oldest     time.Time `json:"oldest"`
}

// SetSpool turns the writing of copies off, or on again. What lies there stays, and
// can be put back either way.
func (d *Desk) SetSpool(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = !on
}

// SpoolState says how the spool is. It reads names and sizes, and the key, but no copy.
func (d *Desk) SpoolState() SpoolState {
	d.mu.Lock()
	s := SpoolState{Folder: d.cfg.Spool, On: !d.off, Key: d.cfg.SpoolKey}
	d.mu.Unlock()
	switch seal, err := loadSeal(s.Key); {
	case err != nil:
		s.Problem = err.Error()
	case seal != nil:
		s.Sealed, s.KeyName = true, seal.name
	}
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		return s // there is none yet
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasSuffix(entry.Name(), ".jsonl") {
			continue
		}
		s.Operations++
		s.Bytes += info.Size()
		if s.Oldest.IsZero() || info.ModTime().Before(s.Oldest) {
			s.Oldest = info.ModTime()
		}
	}
	return s
}
