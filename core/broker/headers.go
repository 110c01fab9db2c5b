package broker

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// HeaderUnreadable holds the raw headers of a delivery that the AMQP library cannot read, cut to 64
// KiB. It replaces all its other headers.
const HeaderUnreadable = "x-attune-unreadable"

// Limits of the AMQP library for one header. It closes the connection over anything beyond, which
// the broker accepts and delivers again to the next connection.
const (
	maxHeaderDepth    = 32
	maxHeaderElements = 8192
	maxUnreadable     = 64 << 10
	maxHeaderFrame    = 128<<10 - 8 // the library's frame size without the frame's own bytes
)

// readableConn forwards frames from the broker. It replaces headers that the library cannot read,
// because one such message would otherwise end the connection of every consumer, for ever.
type readableConn struct {
	net.Conn
	in    *bufio.Reader
	held  *budget       // nil admits everything
	gone  chan struct{} // closed with the connection
	end   sync.Once
	frame []byte // the rest of a frame that was read whole
	body  int    // bytes of the current frame that are forwarded unchanged
}

const (
	frameHead    = 7 // type, channel, size
	typeHeader   = 2 // of a content header frame
	frameEnd     = 0xCE
	propertiesAt = 12
	hasType      = 1 << 15
	hasEncoding  = 1 << 14
	hasHeaders   = 1 << 13
)

// Read implements net.Conn.
func (c *readableConn) Read(b []byte) (int, error) {
	if len(c.frame) == 0 && c.body == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if len(c.frame) > 0 {
		n := copy(b, c.frame)
		c.frame = c.frame[n:]
		return n, nil
	}
	n, err := c.in.Read(b[:min(len(b), c.body)])
	c.body -= n
	return n, err
}

// Close implements net.Conn. It wakes a read that waits for the budget.
func (c *readableConn) Close() error {
	c.end.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// next reads the head of a frame, and the whole frame if it has headers.
func (c *readableConn) next() error {
	head := make([]byte, frameHead)
	if n, err := io.ReadFull(c.in, head); err != nil {
		c.frame = head[:n] // the library handles it
		if n > 0 {
			return nil
		}
		return err
	}
	size := int(binary.BigEndian.Uint32(head[3:]))
	if head[0] != typeHeader || size > 16*maxHeaderFrame {
		c.frame, c.body = head, size+1
		return nil
	}
	payload := make([]byte, size+1)
	if _, err := io.ReadFull(c.in, payload); err != nil {
		return err
	}
	payload = payload[:size]
	body := uint64(0)
	if size >= propertiesAt {
		body = binary.BigEndian.Uint64(payload[4:])
	}
	payload, memory := readable(payload)
	if c.held != nil {
		if err := c.held.take(memory+int(min(body, maxHeld)), c.gone); err != nil {
			return err
		}
	}
	binary.BigEndian.PutUint32(head[3:], uint32(len(payload)))
	c.frame = append(slices.Concat(head, payload), frameEnd)
	return nil
}

// headerWeight is a header that readable adds to large headers: their size in memory, for the budget.
const headerWeight = "x-attune-weight"

// elementBytes is about what one value of a header takes in memory.
const elementBytes = 64

// readable returns a content header that the library can read, and what large headers take in memory. A
// few bytes of headers may hold thousands of values.
func readable(payload []byte) (_ []byte, memory int) {
	if len(payload) < propertiesAt+2 {
		return payload, 0
	}
	flags := binary.BigEndian.Uint16(payload[propertiesAt:])
	at := propertiesAt + 2
	for _, flag := range []uint16{hasType, hasEncoding} {
		if flags&flag != 0 && at < len(payload) {
			at += 1 + int(payload[at])
		}
	}
	if flags&hasHeaders == 0 || at+4 > len(payload) {
		return payload, 0
	}
	size := int(binary.BigEndian.Uint32(payload[at:]))
	end := at + 4 + size
	if size < 0 || end > len(payload) {
		return payload, 0
	}
	table, elements := payload[at+4:end], 0
	if !readTable(table, 0, &elements) || len(payload) > maxHeaderFrame-len(headerWeight)-10 {
		raw := table[:min(len(table), maxUnreadable)]
		table = field(nil, HeaderUnreadable, 'x')
		table = append(binary.BigEndian.AppendUint32(table, uint32(len(raw))), raw...)
		elements = 1
	} else if len(table)+elements*elementBytes <= plainHeaders {
		return payload, 0
	}
	memory = len(table) + elements*elementBytes
	table = binary.BigEndian.AppendUint64(field(slices.Clone(table), headerWeight, 'l'), uint64(memory))
	whole := binary.BigEndian.AppendUint32(slices.Clone(payload[:at]), uint32(len(table)))
	return slices.Concat(whole, table, payload[end:]), memory
}

// field appends the name and the type of a field to a table.
func field(table []byte, name string, kind byte) []byte {
	return append(append(append(table, byte(len(name))), name...), kind)
}

// fixed maps value types to their size in bytes.
var fixed = map[byte]int{
	't': 1, 'b': 1, 'B': 1, 's': 2, 'u': 2, 'I': 4, 'i': 4, 'f': 4, 'l': 8, 'd': 8, 'T': 8, 'D': 5, 'V': 0,
}

// readTable reports whether the library can read a table, and adds the number of its values to count.
func readTable(b []byte, depth int, count *int) bool {
	for n := 0; len(b) > 0; n++ {
		name := 1 + int(b[0])
		if len(b) < name || n >= maxHeaderElements {
			return false
		}
		rest, ok := readValue(b[name:], depth, count)
		if !ok {
			return false
		}
		b = rest
	}
	return true
}

// readValue skips one value. It turns a long of type L into type l, which is equal and known to the
// library.
func readValue(b []byte, depth int, count *int) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	*count++
	if b[0] == 'L' {
		b[0] = 'l'
	}
	kind := b[0]
	b = b[1:]
	if size, known := fixed[kind]; known {
		if len(b) < size {
			return nil, false
		}
		return b[size:], true
	}
	if len(b) < 4 || strings.IndexByte("SxFA", kind) < 0 {
		return nil, false
	}
	size := int(binary.BigEndian.Uint32(b))
	if size < 0 || size > len(b)-4 {
		return nil, false
	}
	value, rest := b[4:4+size], b[4+size:]
	switch kind {
	case 'F':
		return rest, depth < maxHeaderDepth && readTable(value, depth+1, count)
	case 'A':
		if depth >= maxHeaderDepth {
			return nil, false
		}
		for n := 0; len(value) > 0; n++ {
			if value, ok = readValue(value, depth+1, count); !ok || n >= maxHeaderElements {
				return nil, false
			}
		}
	}
	return rest, true
}
