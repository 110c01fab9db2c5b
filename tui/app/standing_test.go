package app

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// marks are the signs of data that is old, and the space that gives way to them.
var marks = regexp.MustCompile(`[~ ─]`)

// Nothing changes behind an open dialog or on a frozen screen. So ages do not grow there either: data that is read
// in time does not look old, and what was well does not look late.
func TestAgesStandStillWhileTheScreenDoes(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"1", "2", "4", "5", "6", "7", "8"} {
		for name, keys := range map[string][2]string{
			"dialog": {"A", "esc"}, "columns": {"c", "esc"}, "frozen": {"p", "p"},
		} {
			if name == "frozen" && view == "1" {
				continue // the marks of old data take the room of other text
			}
			t.Run(name+" over "+view, func(t *testing.T) {
				t.Parallel()
				b := started(t, sample(), 140, 40, func(o *Options) { o.Acts = &fakeActs{} })
				b.press(view)
				before := b.frame()
				b.press(keys[0])
				b.say("") // a message ends by itself
				held := b.frame()
				for range 20 {
					if b.now = b.now.Add(15 * time.Second); name != "frozen" {
						b.run(b.refresh()) // the answers are held
					}
					b.send(clockMsg{})
				}
				if name == "frozen" {
					require.Equal(t, marks.ReplaceAllString(strings.Join(before[3:38], "\n"), ""),
						marks.ReplaceAllString(strings.Join(b.frame()[3:38], "\n"), ""))
				} else {
					require.Equal(t, strings.Join(held[1:], "\n"), strings.Join(b.frame()[1:], "\n"))
					require.Regexp(t, `PG ● .* MQ ● `, b.frame()[0], "the servers answer")
				}
				b.press(keys[1])
				at := b.env.Now
				b.now = b.now.Add(15 * time.Second)
				b.send(clockMsg{})
				require.Equal(t, at.Add(15*time.Second), b.env.Now, "ages count on")
			})
		}
	}
}
