package expr

import (
	"fmt"
	"slices"
)

// maxNesting bounds the depth of an expression.
const maxNesting = 100

// Expression is a parsed expression. It is safe for concurrent use.
type Expression struct {
	source string
	root   node
}

// node is a part of an expression.
type node struct {
	kind  nodeKind
	at    int    // its offset
	text  string // of a name, field, function or operator
	value any    // of a literal
	parts []node
}

type nodeKind int

const (
	nodeValue nodeKind = iota
	nodeName
	nodeList
	nodeField // parts[0].text
	nodeIndex // parts[0][parts[1]]
	nodeCall  // text(parts…)
	nodeUnary // text parts[0]
	nodeBinary
)

// Parse reads an expression.
func Parse(source string) (*Expression, error) {
	lexer := lexer{source: source}
	tokens, err := lexer.tokens()
	if err != nil {
		return nil, err
	}
	p := parser{lexer: &lexer, tokens: tokens}
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokenEnd {
		return nil, p.unexpected(t)
	}
	return &Expression{source: source, root: root}, nil
}

// Source is the text of the expression.
func (e *Expression) Source() string { return e.source }

type parser struct {
	lexer  *lexer
	tokens []token
	at     int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// sign consumes the next token if it is this sign.
func (p *parser) sign(text string) bool {
	if t := p.peek(); t.kind != tokenSign || t.text != text {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(sign, after string) error {
	if p.sign(sign) {
		return nil
	}
	t := p.peek()
	if t.kind == tokenEnd {
		return p.lexer.fail(t.at, "%s is missing after %s", sign, after)
	}
	return p.lexer.fail(t.at, "%s is expected after %s, not %s", sign, after, describe(t))
}

func (p *parser) unexpected(t token) error {
	if t.kind == tokenEnd {
		return p.lexer.fail(t.at, "the expression ends where a value is expected")
	}
	return p.lexer.fail(t.at, "unexpected %s", describe(t))
}

func describe(t token) string {
	if t.kind == tokenValue {
		return fmt.Sprintf("%#v", t.value)
	}
	return t.text
}

// levels are the binary operators, the weakest first. not is between and and the comparisons.
var levels = [][]string{
	{"or"},
	{"and"},
	{"==", "!=", "<", ">", "<=", ">=", "in"},
	{"+", "-"},
	{"*", "/", "%"},
}

const notLevel = 2 // of the operand of not

// expression reads operators of a level and all stronger ones.
func (p *parser) expression(level int) (node, error) {
	if p.depth++; p.depth > maxNesting {
		return node{}, p.lexer.fail(p.peek().at, "the expression is nested deeper than %d", maxNesting)
	}
	defer func() { p.depth-- }()
	if t := p.peek(); level <= notLevel && t.kind == tokenName && t.text == "not" {
		return p.negated(level)
	}
	return p.binary(level)
}

// negated reads not, its operand, and further operators of weaker levels.
func (p *parser) negated(level int) (node, error) {
	t := p.take()
	operand, err := p.expression(notLevel)
	if err != nil {
		return node{}, err
	}
	return p.more(level, notLevel, node{kind: nodeUnary, at: t.at, text: "not", parts: []node{operand}})
}

func (p *parser) binary(level int) (node, error) {
	left, err := p.unary()
	if err != nil {
		return node{}, err
	}
	return p.more(level, len(levels), left)
}

// more reads the operators after a left side, of the levels from up to, but not including, below.
func (p *parser) more(from, below int, left node) (node, error) {
	for level := below - 1; level >= from; level-- {
		for {
			t := p.peek()
			if (t.kind != tokenSign && t.kind != tokenName) || !slices.Contains(levels[level], t.text) {
				break
			}
			p.take()
			right, err := p.expression(level + 1)
			if err != nil {
				return node{}, err
			}
			left = node{kind: nodeBinary, at: t.at, text: t.text, parts: []node{left, right}}
		}
	}
	return left, nil
}

func (p *parser) unary() (node, error) {
	t := p.peek()
	if !p.sign("-") {
		return p.postfix()
	}
	if p.depth++; p.depth > maxNesting {
		return node{}, p.lexer.fail(t.at, "the expression is nested deeper than %d", maxNesting)
	}
	defer func() { p.depth-- }()
	operand, err := p.unary()
	if err != nil {
		return node{}, err
	}
	return node{kind: nodeUnary, at: t.at, text: "-", parts: []node{operand}}, nil
}

// postfix reads a value and its fields, indexes and calls.
func (p *parser) postfix() (node, error) {
	value, err := p.primary()
	if err != nil {
		return node{}, err
	}
	for {
		t := p.peek()
		switch {
		case p.sign("."):
			name := p.take()
			if name.kind != tokenName {
				return node{}, p.lexer.fail(name.at, "the name of a field is expected after the point")
			}
			value = node{kind: nodeField, at: name.at, text: name.text, parts: []node{value}}
		case p.sign("["):
			index, err := p.expression(0)
			if err != nil {
				return node{}, err
			}
			if err := p.expect("]", "an index"); err != nil {
				return node{}, err
			}
			value = node{kind: nodeIndex, at: t.at, parts: []node{value, index}}
		case p.sign("("):
			if value.kind != nodeName {
				return node{}, p.lexer.fail(t.at, "only names can be called")
			}
			arguments, err := p.list(")")
			if err != nil {
				return node{}, err
			}
			value = node{kind: nodeCall, at: value.at, text: value.text, parts: arguments}
		default:
			return value, nil
		}
	}
}

// reserved are no names.
var reserved = []string{"or", "and", "not", "in"}

func (p *parser) primary() (node, error) {
	t := p.take()
	switch t.kind {
	case tokenValue:
		return node{kind: nodeValue, at: t.at, value: t.value}, nil
	case tokenName:
		switch t.text {
		case "true", "false":
			return node{kind: nodeValue, at: t.at, value: t.text == "true"}, nil
		case "null":
			return node{kind: nodeValue, at: t.at}, nil
		}
		if slices.Contains(reserved, t.text) {
			return node{}, p.unexpected(t)
		}
		return node{kind: nodeName, at: t.at, text: t.text}, nil
	case tokenSign:
		switch t.text {
		case "(":
			inner, err := p.expression(0)
			if err != nil {
				return node{}, err
			}
			return inner, p.expect(")", "what is in brackets")
		case "[":
			items, err := p.list("]")
			return node{kind: nodeList, at: t.at, parts: items}, err
		}
	case tokenEnd:
	}
	return node{}, p.unexpected(t)
}

// list reads values up to a closing bracket, which a comma may precede.
func (p *parser) list(end string) ([]node, error) {
	items := []node{}
	for !p.sign(end) {
		item, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if p.sign(end) {
			break
		}
		if err := p.expect(",", "a value of a list"); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Names lists the names and functions of an expression, each once, in order.
func (e *Expression) Names() (names, functions []string) {
	var visit func(n node)
	visit = func(n node) {
		switch n.kind {
		case nodeName:
			if !slices.Contains(names, n.text) {
				names = append(names, n.text)
			}
		case nodeCall:
			if !slices.Contains(functions, n.text) {
				functions = append(functions, n.text)
			}
		case nodeValue, nodeList, nodeField, nodeIndex, nodeUnary, nodeBinary:
		}
		for _, part := range n.parts {
			visit(part)
		}
	}
	visit(e.root)
	return names, functions
}
