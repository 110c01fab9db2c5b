package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSource bounds an expression, in bytes.
const maxSource = 64 << 10

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenValue // a literal
	tokenSign  // an operator or a bracket
)

type token struct {
	kind  tokenKind
	text  string // of a name or sign
	value any    // of a literal
	at    int
}

// signs are the operators and brackets, longer ones first.
var signs = []string{"==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "."}

type lexer struct {
	source string
	at     int
}

func (l *lexer) fail(at int, format string, args ...any) error {
	return &Error{Source: l.source, Offset: at, Text: fmt.Sprintf(format, args...)}
}

func (l *lexer) tokens() ([]token, error) {
	if len(l.source) > maxSource {
		return nil, l.fail(0, "an expression of %d bytes is longer than the %d allowed", len(l.source), maxSource)
	}
	var list []token
	for {
		next, err := l.next()
		if err != nil {
			return nil, err
		}
		list = append(list, next)
		if next.kind == tokenEnd {
			return list, nil
		}
	}
}

func (l *lexer) next() (token, error) {
	for l.at < len(l.source) && strings.IndexByte(" \t\r\n", l.source[l.at]) >= 0 {
		l.at++
	}
	if l.at == len(l.source) {
		return token{kind: tokenEnd, at: l.at}, nil
	}
	switch c := l.source[l.at]; {
	case c == '"' || c == '\'':
		return l.quoted(c)
	case isDigit(c):
		return l.number()
	case isLetter(c):
		begin := l.at
		for l.at < len(l.source) && (isLetter(l.source[l.at]) || isDigit(l.source[l.at])) {
			l.at++
		}
		return token{kind: tokenName, text: l.source[begin:l.at], at: begin}, nil
	}
	for _, sign := range signs {
		if strings.HasPrefix(l.source[l.at:], sign) {
			l.at += len(sign)
			return token{kind: tokenSign, text: sign, at: l.at - len(sign)}, nil
		}
	}
	odd, _ := utf8.DecodeRuneInString(l.source[l.at:])
	return token{}, l.fail(l.at, "unexpected %q", string(odd))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// number reads an integer or a float. A float has digits on both sides of its point, so that 1.field is none.
func (l *lexer) number() (token, error) {
	begin, float := l.at, false
	l.digits()
	if l.at+1 < len(l.source) && l.source[l.at] == '.' && isDigit(l.source[l.at+1]) {
		float = true
		l.at++
		l.digits()
	}
	if l.at < len(l.source) && (l.source[l.at] == 'e' || l.source[l.at] == 'E') {
		rest := strings.TrimLeft(l.source[l.at+1:], "+-")
		if signs := len(l.source) - l.at - 1 - len(rest); signs <= 1 && rest != "" && isDigit(rest[0]) {
			float = true
			l.at += 1 + signs
			l.digits()
		}
	}
	text := l.source[begin:l.at]
	if !float {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return token{}, l.fail(begin, "the number %s has more than 64 bits", text)
		}
		return token{kind: tokenValue, value: n, at: begin}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return token{}, l.fail(begin, "the number %s is too large", text)
	}
	return token{kind: tokenValue, value: f, at: begin}, nil
}

func (l *lexer) digits() {
	for l.at < len(l.source) && isDigit(l.source[l.at]) {
		l.at++
	}
}

// escapes are the characters after a backslash, in addition to the quote.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\'}

func (l *lexer) quoted(quote byte) (token, error) {
	begin := l.at
	var text strings.Builder
	for l.at++; l.at < len(l.source); l.at++ {
		switch c := l.source[l.at]; c {
		case quote:
			l.at++
			return token{kind: tokenValue, value: text.String(), at: begin}, nil
		case '\\':
			l.at++
			if l.at == len(l.source) {
				return token{}, l.fail(begin, "the string does not end")
			}
			escaped, known := escapes[l.source[l.at]]
			switch {
			case known:
				text.WriteByte(escaped)
			case l.source[l.at] == quote:
				text.WriteByte(quote)
			default: // unchanged, with its backslash
				text.WriteByte('\\')
				text.WriteByte(l.source[l.at])
			}
		default:
			text.WriteByte(c)
		}
	}
	return token{}, l.fail(begin, "the string does not end")
}
