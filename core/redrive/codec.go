package redrive

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/broker"
)

// wholeMessage is a message as the spool writes it: every header with the type that
// AMQP gives it, and the body in base64, so that it can be sent again as it was.
type wholeMessage struct {
	Queue           string           `json:"queue"`
	Exchange        string           `json:"exchange"`
	RoutingKey      string           `json:"routing_key"`
	Redelivered     bool             `json:"redelivered,omitempty"`
	Headers         map[string]typed `json:"headers,omitempty"`
	ContentType     string           `json:"content_type,omitempty"`
	ContentEncoding string           `json:"content_encoding,omitempty"`
	DeliveryMode    uint8            `json:"delivery_mode,omitempty"`
	Priority        uint8            `json:"priority,omitempty"`
	CorrelationID   string           `json:"correlation_id,omitempty"`
	ReplyTo         string           `json:"reply_to,omitempty"`
	Expiration      string           `json:"expiration,omitempty"`
	MessageID       string           `json:"message_id,omitempty"`
	Timestamp       *time.Time       `json:"timestamp,omitempty"`
	Type            string           `json:"type,omitempty"`
	UserID          string           `json:"user_id,omitempty"`
	AppID           string           `json:"app_id,omitempty"`
	Body            []byte           `json:"body"`
	Hash            string           `json:"hash"`
}

// typed is a value with the letter that AMQP tags its type with.
type typed struct {
	Tag   string          `json:"t"`
	Value json.RawMessage `json:"v,omitempty"`
}

func encodeWhole(w *Whole, queue string) *wholeMessage {
	m := &wholeMessage{
		Queue: queue, Exchange: w.Exchange, RoutingKey: w.RoutingKey, Redelivered: w.Redelivered, ContentType: w.ContentType,
		ContentEncoding: w.ContentEncoding, DeliveryMode: w.DeliveryMode, Priority: w.Priority, CorrelationID: w.CorrelationID, ReplyTo: w.ReplyTo,
		Expiration: w.Expiration, MessageID: w.MessageID, Type: w.Type, UserID: w.UserID, AppID: w.AppID, Body: w.Body, Hash: Read(w, 0).Hash,
	}
	if !w.Timestamp.IsZero() {
		m.Timestamp = new(w.Timestamp.UTC())
	}
	if len(w.Headers) > 0 {
		m.Headers = make(map[string]typed, len(w.Headers))
		for key, value := range w.Headers {
			m.Headers[key] = encodeValue(value)
		}
	}
	return m
}

func (m *wholeMessage) decode() (*Whole, error) {
	w := &Whole{
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, Redelivered: m.Redelivered, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding,
		DeliveryMode: m.DeliveryMode, Priority: m.Priority, CorrelationID: m.CorrelationID, ReplyTo: m.ReplyTo, Expiration: m.Expiration,
		MessageID: m.MessageID, Type: m.Type, UserID: m.UserID, AppID: m.AppID, Body: m.Body,
	}
	if m.Timestamp != nil {
		w.Timestamp = *m.Timestamp
	}
	if len(m.Headers) > 0 {
		w.Headers = broker.Table{}
		for key, value := range m.Headers {
			decoded, err := value.decode()
			if err != nil {
				return nil, fmt.Errorf("header %s: %w", key, err)
			}
			w.Headers[key] = decoded
		}
	}
	return w, nil
}

// encodeValue writes a value. Numbers are texts, so that none loses a digit.
func encodeValue(value any) typed {
	quoted := func(tag, text string) typed { return typed{tag, json.RawMessage(strconv.Quote(text))} }
	raw := func(tag string, v any) typed {
		out, err := json.Marshal(v)
		if err != nil {
			return typed{Tag: "V"} // none of the types below fails
		}
		return typed{tag, out}
	}
	switch v := value.(type) {
	case nil:
		return typed{Tag: "V"}
	case bool:
		return raw("t", v)
	case int8:
		return quoted("b", strconv.FormatInt(int64(v), 10))
	case uint8:
		return quoted("B", strconv.FormatUint(uint64(v), 10))
	case int16:
		return quoted("s", strconv.FormatInt(int64(v), 10))
	case uint16:
		return quoted("u", strconv.FormatUint(uint64(v), 10))
	case int32:
		return quoted("I", strconv.FormatInt(int64(v), 10))
	case uint32:
		return quoted("i", strconv.FormatUint(uint64(v), 10))
	case int64:
		return quoted("l", strconv.FormatInt(v, 10))
	case float32:
		return quoted("f", strconv.FormatFloat(float64(v), 'g', -1, 32))
	case float64:
		return quoted("d", strconv.FormatFloat(v, 'g', -1, 64))
	case string:
		return typed{"S", json.RawMessage(mustText([]byte(v)))}
	case []byte:
		return typed{"x", json.RawMessage(mustText(v))}
	case time.Time:
		return quoted("T", v.UTC().Format(time.RFC3339))
	case broker.Decimal:
		return raw("D", v)
	case broker.Table:
		inner := make(map[string]typed, len(v))
		for key, each := range v {
			inner[key] = encodeValue(each)
		}
		return raw("F", inner)
	case []any:
		inner := make([]typed, len(v))
		for i, each := range v {
			inner[i] = encodeValue(each)
		}
		return raw("A", inner)
	default:
		return quoted("?", fmt.Sprint(v))
	}
}

// mustText is base64 in quotes: a header may hold bytes that JSON cannot.
func mustText(raw []byte) string { return `"` + base64.StdEncoding.EncodeToString(raw) + `"` }

func (t typed) text() (string, error) {
	var text string
	err := json.Unmarshal(t.Value, &text)
	return text, err
}

func (t typed) bytes() ([]byte, error) {
	var raw []byte
	err := json.Unmarshal(t.Value, &raw)
	return raw, err
}

// integer reads a number of so many bits.
func integer[N int8 | uint8 | int16 | uint16 | int32 | uint32 | int64](t typed) (any, error) {
	text, err := t.text()
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return N(n), err
}

func (t typed) decode() (any, error) {
	switch t.Tag {
	case "V":
		return nil, nil
	case "t":
		var v bool
		err := json.Unmarshal(t.Value, &v)
		return v, err
	case "b":
		return integer[int8](t)
	case "B":
		return integer[uint8](t)
	case "s":
		return integer[int16](t)
	case "u":
		return integer[uint16](t)
	case "I":
		return integer[int32](t)
	case "i":
		return integer[uint32](t)
	case "l":
		return integer[int64](t)
	default:
		return t.decodeOther()
	}
}

func (t typed) decodeOther() (any, error) {
	switch t.Tag {
	case "f", "d":
		text, err := t.text()
		if err != nil {
			return nil, err
		}
		if t.Tag == "d" {
			return strconv.ParseFloat(text, 64)
		}
		v, err := strconv.ParseFloat(text, 32)
		return float32(v), err
	case "S":
		raw, err := t.bytes()
		return string(raw), err
	case "x":
		return t.bytes()
	case "T":
		text, err := t.text()
		if err != nil {
			return nil, err
		}
		return time.Parse(time.RFC3339, text)
	case "D":
		var v broker.Decimal
		err := json.Unmarshal(t.Value, &v)
		return v, err
	case "F":
		return t.decodeTable()
	case "A":
		var inner []typed
		if err := json.Unmarshal(t.Value, &inner); err != nil {
			return nil, err
		}
		list := make([]any, len(inner))
		for i, each := range inner {
			var err error
			if list[i], err = each.decode(); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		return nil, fmt.Errorf("the type %q is unknown", t.Tag)
	}
}

func (t typed) decodeTable() (any, error) {
	var inner map[string]typed
	if err := json.Unmarshal(t.Value, &inner); err != nil {
		return nil, err
	}
	table := broker.Table{}
	for key, each := range inner {
		value, err := each.decode()
		if err != nil {
			return nil, err
		}
		table[key] = value
	}
	return table, nil
}
