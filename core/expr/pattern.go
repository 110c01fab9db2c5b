package expr

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Bounds of patterns. The matcher spends steps, so that it stops at the bound of its evaluation. Package regexp cannot
// be stopped, and its time grows with the product of text and pattern.
const (
	maxPattern      = 1000     // bytes of a pattern
	maxInstructions = 2000     // of a pattern with expanded repetitions
	maxMatched      = 64 << 10 // bytes of a text
	classSteps      = 1000     // for reading a class such as \pL
	bracketSteps    = 60       // for reading [ab]
	unitsPerStep    = 10       // visits of instructions in one step
	classUnits      = 4        // visits for comparing with a class
)

// pattern is a compiled pattern of RE2.
type pattern struct {
	prog   *syntax.Prog
	prefix string // of every match
	begin  bool   // every match is at the beginning of the text
}

// compile reads a pattern and spends its steps before.
func (c call) compile(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, c.bad("the pattern is longer than %d bytes", maxPattern)
	}
	classes := strings.Count(text, `\p`) + strings.Count(text, `\P`) + strings.Count(text, "[:")
	if err := c.spend(c.node, 20+2*len(text)+classSteps*classes+bracketSteps*strings.Count(text, "[")); err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, c.bad("%v", err)
	}
	size := instructions(tree)
	if size > maxInstructions {
		return nil, c.bad("the pattern has more than %d parts, its repetitions counted", maxInstructions)
	}
	if err := c.spend(c.node, 2*size); err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, c.bad("%v", err)
	}
	p := &pattern{prog: prog, begin: prog.StartCond()&syntax.EmptyBeginText != 0}
	p.prefix, _ = prog.Prefix()
	return p, nil
}

// instructions estimates the instructions of a tree. It stops counting beyond the bound.
func instructions(tree *syntax.Regexp) int {
	size := 1
	for _, sub := range tree.Sub {
		if size += instructions(sub); size > maxInstructions {
			return size
		}
	}
	switch tree.Op {
	case syntax.OpLiteral:
		size += len(tree.Rune)
	case syntax.OpRepeat:
		size = min(size, maxInstructions+1) * max(tree.Max, tree.Min+1)
	}
	return size
}

// threads is a set of instructions in the order of their addition.
type threads struct {
	dense  []uint32
	sparse []uint32
}

func (t *threads) add(pc uint32) bool {
	if at := t.sparse[pc]; at < uint32(len(t.dense)) && t.dense[at] == pc {
		return false
	}
	t.sparse[pc] = uint32(len(t.dense))
	t.dense = append(t.dense, pc)
	return true
}

// matcher matches a pattern with one text.
type matcher struct {
	*pattern

	now, next threads
	stack     []uint32
	units     int
}

// matches reports whether the pattern matches anywhere in the text. It spends steps for every visited instruction.
func (c call) matches(p *pattern, text string) (bool, error) {
	size := len(p.prog.Inst)
	m := &matcher{pattern: p, stack: make([]uint32, 0, size)}
	m.now, m.next = threads{sparse: make([]uint32, size)}, threads{sparse: make([]uint32, size)}
	before := rune(-1)
	for at := 0; ; {
		if len(m.now.dense) == 0 {
			switch {
			case p.begin && at > 0:
				return false, m.pay(c)
			case p.prefix != "":
				skipped := strings.Index(text[at:], p.prefix)
				if skipped < 0 {
					return false, c.spend(c.node, (len(text)-at)/stepBytes)
				}
				if skipped > 0 {
					at += skipped
					before, _ = utf8.DecodeLastRuneInString(text[:at])
					m.units += skipped * unitsPerStep / stepBytes
				}
			}
		}
		r, width := rune(-1), 0
		if at < len(text) {
			r, width = utf8.DecodeRuneInString(text[at:])
		}
		flags := syntax.EmptyOpContext(before, r)
		if m.follow(&m.now, uint32(m.prog.Start), flags) { // a match may begin here
			return true, m.pay(c)
		}
		if width == 0 {
			return false, m.pay(c)
		}
		after := rune(-1)
		if at+width < len(text) {
			after, _ = utf8.DecodeRuneInString(text[at+width:])
		}
		if m.step(r, syntax.EmptyOpContext(r, after)) {
			return true, m.pay(c)
		}
		if err := m.pay(c); err != nil {
			return false, err
		}
		before, at = r, at+width
	}
}

// pay spends whole steps for the visits so far.
func (m *matcher) pay(c call) error {
	steps := m.units / unitsPerStep
	m.units %= unitsPerStep
	return c.spend(c.node, steps)
}

// step advances all threads by one character. It reports whether one of them has matched.
func (m *matcher) step(r rune, flags syntax.EmptyOp) bool {
	m.next.dense = m.next.dense[:0]
	for _, pc := range m.now.dense {
		inst := &m.prog.Inst[pc]
		goes := false
		m.units++
		switch inst.Op {
		case syntax.InstRune1:
			goes = r == inst.Rune[0]
		case syntax.InstRuneAny:
			goes = true
		case syntax.InstRuneAnyNotNL:
			goes = r != '\n'
		case syntax.InstRune:
			m.units += classUnits
			goes = inst.MatchRune(r)
		}
		if goes && m.follow(&m.next, inst.Out, flags) {
			return true
		}
	}
	m.now, m.next = m.next, m.now
	return false
}

// follow adds an instruction and all that follow it without a character. It reports whether that is the end of the
// pattern.
func (m *matcher) follow(to *threads, pc uint32, flags syntax.EmptyOp) bool {
	m.stack = append(m.stack[:0], pc)
	for len(m.stack) > 0 {
		pc = m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		m.units++
		if !to.add(pc) {
			continue
		}
		inst := &m.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			m.stack = append(m.stack, inst.Arg, inst.Out)
		case syntax.InstCapture, syntax.InstNop:
			m.stack = append(m.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^flags == 0 {
				m.stack = append(m.stack, inst.Out)
			}
		}
	}
	return false
}

// match finds a pattern of RE2 anywhere in a string.
func match(c call, v []any) (any, error) {
	texts, err := c.strs(v...)
	if err != nil {
		return nil, err
	}
	if size := len(texts[1]); size > maxMatched {
		return nil, c.bad("the text has %d bytes, and %d are matched at most", size, maxMatched)
	}
	p, err := c.compile(texts[0])
	if err != nil {
		return nil, err
	}
	return c.matches(p, texts[1])
}
