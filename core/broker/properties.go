package broker

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Properties are the properties of a message as its publisher set them, without its expiration. Empty
// ones were not set.
type Properties struct {
	MessageID, CorrelationID, Type, ContentType, ContentEncoding, ReplyTo, AppID string
	// UserID is sent only by the login of that name: the broker refuses it from every other.
	UserID                 string
	DeliveryMode, Priority uint8
	Timestamp              time.Time
	Headers                Table
}

// publishing is a message with these properties, from a login.
func (p *Properties) publishing(body []byte, login string) amqp.Publishing {
	m := amqp.Publishing{
		MessageId: p.MessageID, CorrelationId: p.CorrelationID, Type: p.Type, ContentType: p.ContentType,
		ContentEncoding: p.ContentEncoding, ReplyTo: p.ReplyTo, AppId: p.AppID,
		DeliveryMode: p.DeliveryMode, Priority: p.Priority, Timestamp: p.Timestamp, Headers: p.Headers, Body: body,
	}
	if p.UserID == login {
		m.UserId = login
	}
	return m
}

// texts are the places of the texts by their name in an encoding.
func (p *Properties) texts() map[string]*string {
	return map[string]*string{
		"message_id": &p.MessageID, "correlation_id": &p.CorrelationID, "type": &p.Type,
		"content_type": &p.ContentType, "content_encoding": &p.ContentEncoding, "reply_to": &p.ReplyTo,
		"app_id": &p.AppID, "user_id": &p.UserID,
	}
}

// Encode encodes the properties as two tables of AMQP 0-9-1, which keep the type of every header: the size
// of the first, the first, and the headers.
func (p *Properties) Encode() []byte {
	first := Table{"delivery_mode": p.DeliveryMode, "priority": p.Priority}
	for name, text := range p.texts() {
		if *text != "" {
			first[name] = *text
		}
	}
	if !p.Timestamp.IsZero() {
		first["timestamp"] = p.Timestamp
	}
	raw := appendTable(nil, first)
	return appendTable(append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), p.Headers)
}

// DecodeProperties decodes what Encode returned.
func DecodeProperties(raw []byte) (p *Properties, err error) {
	const size = 4
	if len(raw) < size || uint64(binary.BigEndian.Uint32(raw)) > uint64(len(raw)-size) {
		return nil, errTable
	}
	end := size + int(binary.BigEndian.Uint32(raw))
	first, err := decodeTable(raw[size:end])
	if err != nil {
		return nil, err
	}
	p = &Properties{}
	for name, text := range p.texts() {
		*text, _ = first[name].(string)
	}
	p.DeliveryMode, _ = first["delivery_mode"].(uint8)
	p.Priority, _ = first["priority"].(uint8)
	p.Timestamp, _ = first["timestamp"].(time.Time)
	p.Headers, err = decodeTable(raw[end:])
	return p, err
}

// appendTable appends the fields of a table in the format of RabbitMQ, as the AMQP library writes them.
func appendTable(b []byte, table Table) []byte {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		b = append(append(b, byte(len(name))), name...)
		b = appendValue(b, table[name])
	}
	return b
}

func appendValue(b []byte, value any) []byte {
	order := binary.BigEndian
	sized := func(kind byte, content []byte) []byte {
		return append(order.AppendUint32(append(b, kind), uint32(len(content))), content...)
	}
	switch v := value.(type) {
	case bool:
		if v {
			return append(b, 't', 1)
		}
		return append(b, 't', 0)
	case int8:
		return append(b, 'b', byte(v))
	case uint8:
		return append(b, 'B', v)
	case int16:
		return order.AppendUint16(append(b, 's'), uint16(v))
	case uint16:
		return order.AppendUint16(append(b, 'u'), v)
	case int: // as the library writes it
		return order.AppendUint32(append(b, 'I'), uint32(v))
	case int32:
		return order.AppendUint32(append(b, 'I'), uint32(v))
	case uint32:
		return order.AppendUint32(append(b, 'i'), v)
	case int64:
		return order.AppendUint64(append(b, 'l'), uint64(v))
	case float32:
		return order.AppendUint32(append(b, 'f'), math.Float32bits(v))
	case float64:
		return order.AppendUint64(append(b, 'd'), math.Float64bits(v))
	case amqp.Decimal:
		return order.AppendUint32(append(b, 'D', v.Scale), uint32(v.Value))
	case time.Time:
		return order.AppendUint64(append(b, 'T'), uint64(v.Unix()))
	case string:
		return sized('S', []byte(v))
	case []byte:
		return sized('x', v)
	case Table:
		return sized('F', appendTable(nil, v))
	case []any:
		var items []byte
		for _, item := range v {
			items = appendValue(items, item)
		}
		return sized('A', items)
	default:
		return append(b, 'V')
	}
}

var errTable = errors.New("the properties of the message cannot be decoded")

// decodeTable is the inverse of appendTable.
func decodeTable(b []byte) (Table, error) {
	if !readTable(b, 0, new(int)) {
		return nil, errTable
	}
	table := Table{}
	for len(b) > 0 {
		name := b[1 : 1+b[0]]
		table[string(name)], b = decodeValue(b[1+len(name):])
	}
	return table, nil
}

// decodeValue decodes a value that readValue accepts.
func decodeValue(b []byte) (value any, rest []byte) {
	order, kind, b := binary.BigEndian, b[0], b[1:]
	if size, known := fixed[kind]; known {
		b, rest = b[:size], b[size:]
	} else {
		size := 4 + int(order.Uint32(b))
		b, rest = b[4:size], b[size:]
	}
	switch kind {
	case 't':
		value = b[0] != 0
	case 'b':
		value = int8(b[0])
	case 'B':
		value = b[0]
	case 's':
		value = int16(order.Uint16(b))
	case 'u':
		value = order.Uint16(b)
	case 'I':
		value = int32(order.Uint32(b))
	case 'i':
		value = order.Uint32(b)
	case 'l':
		value = int64(order.Uint64(b))
	case 'f':
		value = math.Float32frombits(order.Uint32(b))
	case 'd':
		value = math.Float64frombits(order.Uint64(b))
	case 'D':
		value = amqp.Decimal{Scale: b[0], Value: int32(order.Uint32(b[1:]))}
	case 'T':
		value = time.Unix(int64(order.Uint64(b)), 0)
	case 'S':
		value = string(b)
	case 'x':
		value = slices.Clone(b)
	case 'F':
		value, _ = decodeTable(b) // readValue has read it
	case 'A':
		list := []any{}
		for len(b) > 0 {
			var item any
			item, b = decodeValue(b)
			list = append(list, item)
		}
		value = list
	}
	return value, rest
}
