package brokerqueues

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// head describes the broker: its name and version, its messages, alarms, blocked clients and nodes.
func (v *Broker) head(w int) []string {
	e, b, mark := v.env, v.env.Data.Broker, v.env.Mark(screen.FeedBroker)
	var ready, unacked int64
	uncounted := 0
	for i := range b.Queues {
		ready, unacked = ready+b.Queues[i].Ready, unacked+b.Queues[i].Unacked
		if b.Queues[i].Uncounted {
			uncounted++
		}
	}
	first := " " + e.Head(screen.FeedBroker, "BROKER") + "  " + widget.CutMiddle(widget.Clean(b.Node), 24) + "  " +
		widget.Cut(widget.Clean(b.Version), 12) + "  vhost " + widget.CutMiddle(widget.Clean(b.VHost), 20)
	second := " " + e.Num(int64(len(b.Queues))) + mark + " queues  ready " + e.Num(ready) + mark + "  unacked " +
		e.Num(unacked) + mark
	if uncounted > 0 {
		second += e.Paint(theme.Warn, "  "+strconv.Itoa(uncounted)+" not counted yet")
	}
	// state lists names, or says that there are none or that they are unknown.
	state := func(unknown string, names []string, none, found string) string {
		switch {
		case unknown != "":
			return widget.Unknown
		case len(names) == 0:
			return none + mark
		default:
			list := widget.Cut(widget.Clean(strings.Join(names, ", ")), 40)
			return e.Paint(theme.Bad, e.Theme.Glyphs.Critical+" "+found+list)
		}
	}
	second += "   alarms " + state(b.AlarmsUnknown, b.Alarms, "none", "") + "   blocked " +
		state(b.BlockedUnknown, b.Blocked, "no", e.Plural(int64(len(b.Blocked)), "client", "clients")+": ")
	lines := []string{widget.Cut(first, w), widget.Cut(second, w)}
	if b.NodesUnknown != "" {
		return append(lines,
			widget.Cut(" nodes "+widget.Unknown+"  "+e.Dim(widget.Clean(b.NodesUnknown)), w))
	}
	for _, n := range b.Nodes[:min(len(b.Nodes), 3)] {
		lines = append(lines, widget.Cut(" "+v.node(n), w))
	}
	return lines
}

// node is the memory and disk of a node of the broker.
func (v *Broker) node(n monitor.BrokerNode) string {
	e := v.env
	name := widget.CutMiddle(widget.Clean(n.Name), 24)
	if !n.Running {
		return e.State("stale") + " " + name + "  not running"
	}
	painted := func(text string, alarm bool) string {
		if alarm {
			return e.Paint(theme.Bad, e.Theme.Glyphs.Critical+" "+text)
		}
		return text
	}
	memory := painted("memory "+bytes(n.MemoryUsed)+" of "+bytes(n.MemoryLimit), n.MemoryAlarm)
	disk := painted("disk free "+bytes(n.DiskFree)+" (limit "+bytes(n.DiskLimit)+")", n.DiskAlarm)
	up := ""
	if n.Uptime != nil {
		up = "   up " + widget.Short(*n.Uptime)
	}
	return e.Paint(theme.Good, e.Theme.Glyphs.OK) + " " + name + "   " + memory + "   " + disk + up
}

func bytes(n *int64) string {
	if n == nil {
		return widget.Unknown
	}
	return widget.Bytes(*n)
}

// foot sums up the checks of the wiring unless the preview lists them.
func (v *Broker) foot(w int) []string {
	if v.PreviewLines(w, v.env.Height) > 0 {
		return nil
	}
	return v.env.CheckSummary(w, "topology.")
}

// preview shows the settings of the selected queue beside the checks of the wiring.
func (v *Broker) preview(w, h int) []string {
	e := v.env
	title, left := "checks", []string(nil)
	if r := v.Current(); r != nil {
		title = named(r)
		left = v.settings(r, w/2-2)
	}
	lines := []string{e.Rule("preview: "+title, "wiring checked every 25s", w)}
	right := append([]string{e.Head(screen.FeedChecks, "WIRING")}, e.CheckLines(w-w/2-2, h-2, "topology.")...)
	return append(lines, widget.Beside(left, right, w/2, w-w/2-2, h-1, e.Dim("│")+" ")...)
}

func (v *Broker) settings(r *row, w int) []string {
	e := v.env
	var lines []string
	add := func(label, text string) {
		lines = append(lines, " "+e.Dim(widget.Left(label, 12))+widget.Cut(widget.Clean(text), w-14))
	}
	look := e.Theme.Of(r.state)
	for _, line := range widget.Hang(look.Glyph+" ", widget.Clean(cmp.Or(r.note, r.state)), w-2) {
		lines = append(lines, " "+e.Paint(look.Role, line))
	}
	durable := "durable"
	if !r.Durable {
		durable = "not durable"
	}
	add("type", strings.TrimSpace(r.Type+" "+durable)+", "+r.State)
	add("messages", e.BrokerNum(r.BrokerQueue, r.Ready)+" ready, "+e.BrokerNum(r.BrokerQueue, r.Unacked)+" unacked, "+
		e.Consumers(&r.BrokerQueue))
	add("a second", rate(r.Published)+" in, "+rate(r.Delivered)+" out, "+rate(r.Acked)+" acknowledged")
	add("ttl", short(r.TTL)+", queue expires "+short(r.Expires))
	dead := exchange(r.DeadLetterExchange, "-")
	if r.DeadLetterKey != "" {
		dead += ", key " + r.DeadLetterKey
	}
	add("dead letter", dead)
	overflow := limit(e, r)
	if overflow != "-" {
		overflow += ", then " + cmp.Or(r.Overflow, "drop-head")
	}
	add("max length", overflow)
	if r.DeliveryLimit != nil {
		add("deliveries", "at most "+strconv.FormatInt(*r.DeliveryLimit, 10))
	}
	add("policy", cmp.Or(strings.Join(policies(r), "+"), "-"))
	switch {
	case r.orphan:
		add("worker", "none: worker "+strconv.FormatInt(*r.Worker, 10)+" has no row")
	case r.worker != "":
		add("worker", r.worker)
	}
	return lines
}
