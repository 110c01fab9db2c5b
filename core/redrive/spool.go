package redrive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// States of a spooled letter.
const (
	stateSpooled = "spooled" // it may or may not have left its queue
	StateRemoved = "removed" // it has left
	StateKept    = "kept"    // it went back to its queue
	StateUndone  = "put back"
	// stateReturning is that of a letter that was being put back: it may be there.
	stateReturning = "being put back"
)

// missing reports whether a letter in the state is to be put back.
func missing(state string) bool {
	return state == StateRemoved || state == stateSpooled || state == stateReturning
}

// spoolKept is for how long the spool of an operation is kept.
const spoolKept = 90 * 24 * time.Hour

// errNoSpool says that nothing is removed without a copy unless that was asked for.
var errNoSpool = errors.New("there is no folder for the spool, and nothing is removed without a copy; :spool off allows it")

// line is one line of a spool: the head of an operation, a letter, plain or sealed,
// or what became of one.
type line struct {
	Head   *Head         `json:"head,omitempty"`
	N      int           `json:"n"`
	Letter *wholeMessage `json:"letter,omitempty"`
	Sealed []byte        `json:"sealed,omitempty"`
	State  string        `json:"state,omitempty"`
	At     time.Time     `json:"at"`
}

// Head says of which operation a spool is.
type Head struct {
	Op      string    `json:"op"`
	Do      string    `json:"do"`
	By      string    `json:"by"`
	Context string    `json:"context,omitempty"`
	Queue   string    `json:"queue"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason,omitempty"`
	// Key names the key by which its letters are sealed; empty if they are plain.
	Key string `json:"key,omitempty"`
}

// spool is the file of one operation. Only its owner can read it: it holds bodies.
type spool struct {
	file *os.File
	op   string
	seal *seal // nil where letters are written plainly
	n    int
}

func spoolPath(folder, op string) string { return filepath.Join(folder, op+".jsonl") }

// openSpool makes the file of an operation. With a seal its letters are sealed.
func openSpool(folder string, head Head, seal *seal) (*spool, error) {
	if folder == "" {
		return nil, errNoSpool
	}
	if seal != nil {
		head.Key = seal.name
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the spool: %w", err)
	}
	prune(folder, head.At)
	file, err := os.OpenFile(spoolPath(folder, head.Op), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	s := &spool{file: file, op: head.Op, seal: seal}
	if err = s.write(line{Head: &head, At: head.At}); err == nil {
		err = s.sync()
	}
	if err != nil {
		_ = file.Close() // there is nothing in it
		return nil, err
	}
	if dir, err := os.Open(folder); err == nil { // so that its name outlives a loss of power
		_ = dir.Sync()
		_ = dir.Close()
	}
	return s, nil
}

// prune removes spools that are too old.
func prune(folder string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && strings.HasSuffix(entry.Name(), ".jsonl") && now.Sub(info.ModTime()) > spoolKept {
			_ = os.Remove(filepath.Join(folder, entry.Name())) // the next one tries again
		}
	}
}

func (s *spool) write(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if _, err := s.file.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// add writes a letter down and returns its number. It is safe after sync.
func (s *spool) add(w *Whole, queue string) (int, error) {
	s.n++
	l := line{N: s.n, Letter: encodeWhole(w, queue), State: stateSpooled, At: time.Now()}
	if s.seal != nil {
		var err error
		if l.Sealed, err = s.seal.close(l.Letter, s.op, s.n); err != nil {
			return 0, err
		}
		l.Letter = nil
	}
	return s.n, s.write(l)
}

func (s *spool) mark(n int, state string) error {
	return s.write(line{N: n, State: state, At: time.Now()})
}

func (s *spool) sync() error {
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (s *spool) close() error {
	err := s.sync()
	return errors.Join(err, s.file.Close())
}

// reopenSpool appends to the spool of an operation.
func reopenSpool(folder, op string) (*spool, error) {
	file, err := os.OpenFile(spoolPath(folder, op), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	return &spool{file: file}, nil
}

// Spooled is what the spool of one operation holds.
type Spooled struct {
	Head
	Letters []Letter `json:"letters"`
	// Trouble says why its letters cannot be opened, of which there are Shut; empty if
	// they can.
	Trouble string `json:"trouble,omitempty"`
	Shut    int    `json:"shut,omitempty"`
	numbers []int
}

// Undoable counts the letters that can be put back.
func (s *Spooled) Undoable() int {
	n := 0
	for _, l := range s.Letters {
		if missing(l.State) {
			n++
		}
	}
	return n
}

// maxSpoolLine bounds one letter, which is base64 of a body.
const maxSpoolLine = 64 << 20

// readSpool reads a spool. A last line that a crash has cut is left out: what it was
// about has not left its queue, since it leaves only after the line is safe. Of one
// that cannot be opened the letters are only counted.
func readSpool(path string, key lock) (*Spooled, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	s := &Spooled{}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, maxSpoolLine)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			continue
		}
		if err := s.take(&l, key); err != nil {
			return nil, err
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read the spool %s: %w", filepath.Base(path), err)
	}
	return s, nil
}

func (s *Spooled) take(l *line, key lock) error {
	switch {
	case l.Head != nil:
		s.Head, s.Trouble = *l.Head, key.refuses(l.Head.Key)
	case l.Sealed != nil && s.Trouble != "":
		s.Shut++
	case l.Sealed != nil || l.Letter != nil:
		if err := s.add(l, key); err != nil {
			return fmt.Errorf("read letter %d of spool %s: %w", l.N, s.Op, err)
		}
	default:
		if at := slices.Index(s.numbers, l.N); at >= 0 {
			s.Letters[at].State = l.State
		}
	}
	return nil
}

// add takes over a letter, plain or sealed as the head says that all of them are.
func (s *Spooled) add(l *line, key lock) error {
	m := l.Letter
	switch {
	case (l.Sealed != nil) != (s.Key != ""), l.Sealed != nil && m != nil:
		return errAltered
	case l.Sealed != nil:
		var err error
		if m, err = key.seal.open(l.Sealed, s.Op, l.N); err != nil {
			return err
		}
	}
	w, err := m.decode()
	if err != nil {
		return err
	}
	letter := Read(w, len(s.Letters))
	letter.Op, letter.State = s.Op, l.State
	s.Letters, s.numbers = append(s.Letters, letter), append(s.numbers, l.N)
	return nil
}

// spoolShown bounds how many letters of the spool are listed.
const spoolShown = 500

// spooled reads the spool of an operation that is to be put back. One whose letters
// cannot be opened is refused.
func (d *Desk) spooled(op string) (*Spooled, error) {
	if d.cfg.Spool == "" {
		return nil, errNoSpool
	}
	s, err := readSpool(spoolPath(d.cfg.Spool, op), d.lock())
	if err != nil {
		return nil, err
	}
	if s.Trouble != "" {
		return nil, fmt.Errorf("the copies of operation %.8s cannot be opened: %s; nothing was touched", op, s.Trouble)
	}
	return s, nil
}

// Spool lists what the spool holds, the newest operation first.
func (d *Desk) Spool() ([]*Spooled, error) {
	if d.cfg.Spool == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(d.cfg.Spool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	var all []*Spooled
	letters, key := 0, d.lock()
	slices.Reverse(entries) // names begin with their time
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".jsonl") {
			continue
		}
		s, err := readSpool(filepath.Join(d.cfg.Spool, entry.Name()), key)
		if err != nil { // which is no reason to hide the others
			s = &Spooled{Head: Head{Op: strings.TrimSuffix(entry.Name(), ".jsonl")}, Trouble: err.Error()}
		}
		all = append(all, s)
		if letters += len(s.Letters); letters >= spoolShown {
			break
		}
	}
	return all, nil
}
