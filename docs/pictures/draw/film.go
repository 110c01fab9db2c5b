package main

import (
	"fmt"
	"time"
)

// scene is one frame of a film.
type scene struct {
	Frame   string
	Caption string // beside the title in the bar
	Shown   time.Duration
}

// film draws one or more scenes in a loop. Viewers without animation, or with reduced motion, show the last
// scene.
func film(scenes []scene, o options) []byte {
	frames, total := make([]string, len(scenes)), time.Duration(0)
	for i, s := range scenes {
		frames[i] = s.Frame
		total += max(s.Shown, time.Millisecond)
	}
	d, sizes := begin(o, frames...)
	d.window(sizes)
	d.out.WriteString(
		"\n<style>g{visibility:hidden}g:last-of-type{visibility:visible}@media (prefers-reduced-motion:no-preference){")
	begun := time.Duration(0)
	for i, s := range scenes {
		ended := begun + max(s.Shown, time.Millisecond)
		fmt.Fprintf(&d.out, "@keyframes s%d{0%%{visibility:%s}%s{visibility:visible}%s{visibility:%s}}", i,
			visibility(i == 0), share(begun, total), share(ended, total), visibility(i == len(scenes)-1))
		fmt.Fprintf(&d.out, "#s%d{animation:s%d %gs step-end infinite}", i, i, total.Seconds())
		begun = ended
	}
	d.out.WriteString("}</style>\n")
	for i, s := range scenes {
		fmt.Fprintf(&d.out, `<g id="s%d">`, i)
		title := o.Title + s.Caption
		if o.Title != "" && s.Caption != "" {
			title = o.Title + " · " + s.Caption
		}
		d.frame(sizes.lines[i], title, sizes.width)
		d.out.WriteString("</g>\n")
	}
	d.out.WriteString("</svg>\n")
	return d.out.Bytes()
}

func visibility(seen bool) string {
	if seen {
		return "visible"
	}
	return "hidden"
}

// share returns a moment as a percentage of the whole.
func share(at, total time.Duration) string {
	return number(100*at.Seconds()/total.Seconds()) + "%"
}
