package broker

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
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
	large *budget // of bodies; nil admits everything
	frame []byte  // the rest of a frame that was read whole
	body  int     // bytes of the current frame that are forwarded unchanged
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
	err := c.Conn.Close()
	if c.large != nil {
		c.large.leave() // for good
	}
	return err
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
	if c.large != nil && size >= propertiesAt {
		c.large.take(int(min(binary.BigEndian.Uint64(payload[4:]), largeBudget)))
	}
	payload = readable(payload[:size])
	binary.BigEndian.PutUint32(head[3:], uint32(len(payload)))
	c.frame = append(slices.Concat(head, payload), frameEnd)
	return nil
}

// readable returns a content header that the library can read.
func readable(payload []byte) []byte {
	if len(payload) < propertiesAt+2 {
		return payload
	}
	flags := binary.BigEndian.Uint16(payload[propertiesAt:])
	at := propertiesAt + 2
	for _, flag := range []uint16{hasType, hasEncoding} {
		if flags&flag != 0 && at < len(payload) {
			at += 1 + int(payload[at])
		}
	}
	if flags&hasHeaders == 0 || at+4 > len(payload) {
		return payload
	}
	size := int(binary.BigEndian.Uint32(payload[at:]))
	end := at + 4 + size
	if size < 0 || end > len(payload) {
		return payload
	}
	table := payload[at+4 : end]
	if readTable(table, 0) && len(payload) <= maxHeaderFrame {
		return payload
	}
	raw := table[:min(len(table), maxUnreadable)]
	name := HeaderUnreadable
	substitute := append([]byte{byte(len(name))}, name...)
	substitute = append(substitute, 'x')
	substitute = binary.BigEndian.AppendUint32(substitute, uint32(len(raw)))
	substitute = append(substitute, raw...)
	whole := append([]byte{}, payload[:at]...)
	whole = binary.BigEndian.AppendUint32(whole, uint32(len(substitute)))
	return append(append(whole, substitute...), payload[end:]...)
}

// fixed maps value types to their size in bytes.
var fixed = map[byte]int{
	't': 1, 'b': 1, 'B': 1, 's': 2, 'u': 2, 'I': 4, 'i': 4, 'f': 4, 'l': 8, 'd': 8, 'T': 8, 'D': 5, 'V': 0,
}

// readTable reports whether the library can read a table.
func readTable(b []byte, depth int) bool {
	for n := 0; len(b) > 0; n++ {
		name := 1 + int(b[0])
		if len(b) < name || n >= maxHeaderElements {
			return false
		}
		rest, ok := readValue(b[name:], depth)
		if !ok {
			return false
		}
		b = rest
	}
	return true
}

// readValue skips one value. It turns a long of type L into type l, which is equal and known to the
// library.
func readValue(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
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
		return rest, depth < maxHeaderDepth && readTable(value, depth+1)
	case 'A':
		if depth >= maxHeaderDepth {
			return nil, false
		}
		for n := 0; len(value) > 0; n++ {
			if value, ok = readValue(value, depth+1); !ok || n >= maxHeaderElements {
				return nil, false
			}
		}
	}
	return rest, true
}
