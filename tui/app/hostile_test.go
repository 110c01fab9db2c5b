package app

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// spoilt are texts with control characters.
var spoilt = []string{
	"", " ", "x", "\x00", "\x1b[2J\x1b]0;owned\a", "\x9b31m\x90q\x1b\\", "a\r\nb\tc\vd\u2028e",
	"\u202Eevil\u2066\u200f", "世界" + strings.Repeat("界", 90),
	"e" + strings.Repeat("\u0301", 300), "👩‍👩‍👧‍👦🏳️‍🌈👍🏽", "\xff\xfe\xc3(\xa0\xa1", "%s%d%!",
	`{"a": [1, {"b": "` + "\x1b[31m" + `"}], "password": "hunter2"}`,
	`{"deep": ` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "}", strings.Repeat("long ", 400),
	"\u00a0\u2009\u200b\ufeff", "-1", "1e309",
}

var errNoRoute = errors.New("dial tcp: no route to host")

// mebibytes are lines as long as a message may be.
var mebibytes = []string{strings.Repeat("m", 1<<20), `"` + strings.Repeat("界", 1<<18) + `"`}

// spoiler replaces every text in the answers of a source, so that texts of future views are covered too.
type spoiler struct {
	random *rand.Rand
	seen   map[uintptr]bool
}

// spoil returns an installation whose texts are all spoilt.
func spoil(source *fakeSource, seed uint64) *fakeSource {
	s := &spoiler{random: rand.New(rand.NewPCG(seed, 0)), seen: map[uintptr]bool{}}
	all := reflect.ValueOf(source).Elem()
	for _, field := range all.Fields() {
		if s.answers(field.Type()) {
			s.visit(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
		}
	}
	return source
}

// answers reports whether a source returns values of the type.
func (s *spoiler) answers(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t.PkgPath() != "sync"
}

func (s *spoiler) text() string {
	if s.random.IntN(60) == 0 {
		return mebibytes[s.random.IntN(len(mebibytes))]
	}
	return spoilt[s.random.IntN(len(spoilt))]
}

func (s *spoiler) visit(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(s.text())
		}
	case reflect.Pointer:
		if !v.IsNil() && !s.seen[v.Pointer()] {
			s.seen[v.Pointer()] = true
			s.visit(v.Elem())
		}
	case reflect.Struct:
		s.fields(v)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			s.visit(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			s.visit(each.Value())
		}
	}
}

func (s *spoiler) fields(v reflect.Value) {
	for _, field := range v.Fields() {
		if !field.CanSet() && v.CanAddr() && s.answers(field.Type()) {
			field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		}
		if v.Type().PkgPath() != "time" {
			s.visit(field)
		}
	}
}

// TestEveryFrameOfSpoiltTextFits draws every view of spoilt installations at sizes
// from the smallest to the largest.
func TestEveryFrameOfSpoiltTextFits(t *testing.T) {
	t.Parallel()
	sizes := 3
	if testkit.Slow() {
		sizes = 8
	}
	for seed := range uint64(3) {
		for _, view := range keymap.Scopes {
			t.Run(string(view), func(t *testing.T) {
				t.Parallel()
				source := spoil(sample(), seed)
				if seed == 2 {
					source = spoil(huge(40), seed)
				}
				b := started(t, source, 80, 24, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
				b.open(view)
				random := rand.New(rand.NewPCG(seed, 1))
				for range sizes {
					w, h := 20+random.IntN(201), 6+random.IntN(65)
					b.send(tea.WindowSizeMsg{Width: w, Height: h})
					requireFits(t, b, w, h)
					requireInert(t, b)
				}
			})
		}
	}
}

// requireInert fails when a frame holds a control character other than the ones that begin the dashboard's own
// colours.
func requireInert(t *testing.T, b *bundle) {
	t.Helper()
	for i, line := range b.frame() {
		for _, part := range strings.Split(line, "\x1b")[1:] {
			require.Regexp(t, `^\[[0-9;]*m`, part, "line %d: %q", i, line)
		}
		for _, r := range line {
			if (r < ' ' && r != '\x1b') || (r >= 0x7f && r <= 0x9f) ||
				strings.ContainsRune("\u200b\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2028\ufeff", r) {
				require.Fail(t, "a control character in a frame", "line %d: %q", i, line)
			}
		}
	}
}

// typed are the keys of a random sequence: all that mean something, and some that
// do not.
var typedKeys = func() []string {
	keys := []string{
		"enter", "esc", "down", "up", "tab", "shift+tab", "ctrl+d", "ctrl+u", "end", "backspace", "pgdown",
		"left", "right", "é", "界", "\x1b", "gg",
	}
	for r := '!'; r <= '~'; r++ {
		keys = append(keys, string(r))
	}
	return keys
}()

// FuzzKeys types random keys at random data, while polls fail and answer, windows
// change and time passes. Every frame fits, and control-c always ends the program.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{
		"2j jjA\x01\x02", "3/status:failed\x00 *A", "4sc\x05\x06\x05", "5RDPMS", "6\x00oxW?", ":queues\x00", "gg*\\V",
		"L\x00\x01", "7am8\x009", "1234567890zvpt",
		"\xf0\xf1\xf2j\xf3k\xf4", "2Ac\xf010\x00y\x00", "3A\x00\x00\x00y", "?/que\x00\x01\x01q",
	} {
		f.Add(uint64(len(seed)), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, keys []byte) {
		source := sample()
		switch seed % 3 {
		case 1:
			source = spoil(sample(), seed)
		case 2:
			source = huge(int(seed % 300))
		}
		acts := &fakeActs{}
		b := polled(t, source, 80, 24, func(o *Options) { o.Acts = acts })
		for _, key := range keys[:min(len(keys), 200)] {
			b.meddle(key)
			requireFits(t, b, b.width, b.height)
		}
		requireInert(t, b)
		require.True(t, b.quits("ctrl+c"), "control-c does not end the program")
	})
}

// meddle does one thing to the model: it types a key, or changes its surroundings.
func (b *bundle) meddle(with byte) {
	b.t.Helper()
	switch with {
	case 0xf0:
		b.send(tea.WindowSizeMsg{Width: 20, Height: 6})
	case 0xf1:
		b.send(tea.WindowSizeMsg{Width: 220, Height: 70})
	case 0xf2:
		b.source.fail = map[screen.Feed]error{screen.FeedOverview: errNoRoute, screen.FeedQueues: errNoRoute}
	case 0xf3:
		b.source.fail = nil
	case 0xf4:
		b.later(90 * time.Second)
	case 0xf5:
		b.send(tea.BlurMsg{})
	case 0xf6:
		b.send(tea.MouseMsg{X: b.width / 3, Y: b.height / 2, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	default:
		b.press(typedKeys[int(with)%len(typedKeys)])
	}
}

// quits presses a key and reports whether the program ends.
func (b *bundle) quits(key string) bool {
	_, cmd := b.Update(keyMsg(key))
	return ends(cmd)
}

func ends(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		return slices.ContainsFunc(msg, ends)
	}
	return false
}
