package datapath

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// curveOf is one line of a panel.
type curveOf struct {
	name   string
	dashed bool
	points [][2]float64
}

// panel is one diagram with a logarithmic x axis.
type panel struct {
	title, x, y string
	logY        bool
	curves      []curveOf
}

// The size of a panel and of its margins.
const (
	panelWidth, panelHeight         = 460, 330
	marginLeft, marginRight         = 58, 16
	marginTop, marginBottom         = 34, 92
	plotWidth               float64 = panelWidth - marginLeft - marginRight
	plotHeight              float64 = panelHeight - marginTop - marginBottom
)

// colours differ in brightness too.
var colours = []string{"#1f5fa8", "#d1662a", "#2f8f4e", "#8a4fa0", "#b03a48", "#555555"}

// Plot draws the growth of a queue and the throughput by keys as SVG.
func (r *Report) Plot(out io.Writer) error {
	var b strings.Builder
	panels := []panel{r.growthPanel(), r.keysPanel()}
	width := panelWidth * len(panels)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n",
		width, panelHeight, width, panelHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, panelHeight)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d,0)">`+"\n", i*panelWidth)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

func (r *Report) growthPanel() panel {
	p := panel{title: "One queue: a batch's time (median)", x: "executions waiting in the queue", y: "ms", logY: true}
	byName := map[string]int{}
	for _, g := range r.Growth {
		name := fmt.Sprintf("%s ×%d", g.Operation, g.Batch)
		if g.Design == DesignD1 {
			name = "D1: " + name
		}
		if _, known := byName[name]; !known {
			byName[name] = len(p.curves)
			p.curves = append(p.curves, curveOf{name: name, dashed: g.Design == DesignD1})
		}
		c := &p.curves[byName[name]]
		c.points = append(c.points, [2]float64{float64(g.Waiting), g.P50})
	}
	return p
}

func (r *Report) keysPanel() panel {
	p := panel{title: "Keys, each with limit 5: executions a second", x: "keys", y: "per s"}
	c := curveOf{name: "engine, one replica"}
	for _, o := range r.Scenarios {
		s := o.Scenario
		if s.Design == DesignEngine && s.Limit == 5 && s.Replicas == 1 && s.Hold == 0 && s.Aborts == 0 &&
			len(o.Rounds) > 0 {
			c.points = append(c.points, [2]float64{float64(s.Keys), o.Median.PerSecond})
		}
	}
	slices.SortFunc(c.points, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	if len(c.points) > 0 {
		p.curves = append(p.curves, c)
	}
	return p
}

// bounds returns the ends of the axes: whole powers of ten, or zero for a linear y.
func (p panel) bounds() (low, high [2]float64) {
	low, high = [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{}
	for _, c := range p.curves {
		for _, point := range c.points {
			for axis := range 2 {
				low[axis], high[axis] = min(low[axis], point[axis]), max(high[axis], point[axis])
			}
		}
	}
	if len(p.curves) == 0 {
		return [2]float64{1, 1}, [2]float64{10, 10} // a logarithmic axis does not begin at zero
	}
	decade := func(v float64, round func(float64) float64) float64 { return math.Pow(10, round(math.Log10(v))) }
	low[0], high[0] = decade(low[0], math.Floor), decade(high[0], math.Ceil)
	if high[0] == low[0] {
		high[0] *= 10
	}
	if p.logY {
		low[1], high[1] = decade(low[1], math.Floor), decade(high[1], math.Ceil)
		return low, high
	}
	step := decade(high[1], math.Floor)
	low[1], high[1] = 0, math.Ceil(high[1]/step)*step
	return low, high
}

func (p panel) draw(b *strings.Builder) {
	low, high := p.bounds()
	x := func(v float64) float64 {
		return marginLeft + plotWidth*math.Log10(v/low[0])/math.Log10(high[0]/low[0])
	}
	y := func(v float64) float64 {
		if p.logY {
			return marginTop + plotHeight*(1-math.Log10(v/low[1])/math.Log10(high[1]/low[1]))
		}
		return marginTop + plotHeight*(1-(v-low[1])/(high[1]-low[1]))
	}
	fmt.Fprintf(b, `<text x="%d" y="20" font-size="13" font-weight="bold">%s</text>`+"\n", marginLeft, p.title)
	for v := low[0]; v <= high[0]*1.01; v *= 10 {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%.1f" stroke="#e3e3e3"/>`, x(v), marginTop, x(v),
			marginTop+plotHeight)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(v), marginTop+plotHeight+14,
			thousands(int(v)))
	}
	for _, v := range p.ticks(low[1], high[1]) {
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e3e3e3"/>`, marginLeft, y(v),
			marginLeft+plotWidth, y(v))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", marginLeft-6, y(v)+4, number(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, marginLeft+plotWidth/2,
		marginTop+plotHeight+30, p.x)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", 8, marginTop-4, p.y)
	for i, c := range p.curves {
		c.draw(b, colours[i%len(colours)], x, y)
		// The legend, in two columns.
		left, top := marginLeft+(i%2)*195, marginTop+plotHeight+46+float64(i/2)*14
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2"%s/>`, left, top-4,
			left+18, top-4, colours[i%len(colours)], c.dash())
		fmt.Fprintf(b, `<text x="%d" y="%.1f">%s</text>`+"\n", left+23, top, c.name)
	}
}

func (c curveOf) dash() string {
	if c.dashed {
		return ` stroke-dasharray="5 3"`
	}
	return ""
}

func (c curveOf) draw(b *strings.Builder, colour string, x, y func(float64) float64) {
	var path []string
	for _, point := range c.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x(point[0]), y(point[1])))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(point[0]), y(point[1]), colour)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(path, " "),
		colour, c.dash())
}

func (p panel) ticks(low, high float64) (ticks []float64) {
	if p.logY {
		for v := low; v <= high*1.01; v *= 10 {
			ticks = append(ticks, v)
		}
		return ticks
	}
	for i := range 6 {
		ticks = append(ticks, low+(high-low)*float64(i)/5)
	}
	return ticks
}

func number(v float64) string {
	if v >= 1 || v == 0 {
		return thousands(int(math.Round(v)))
	}
	return fmt.Sprintf("%g", v)
}
