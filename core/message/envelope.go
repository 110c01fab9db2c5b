package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Version is the version every envelope is written with.
const Version = "1.0"

// Errors of Decode. Each is wrapped with what was found.
var (
	ErrTooLarge    = errors.New("message body is too large or nested too deeply")
	ErrNotJSON     = errors.New("message body is not a JSON object")
	ErrUnknownType = errors.New("message type is unknown")
	ErrIncomplete  = errors.New("message lacks a required field")
)

// Envelope is one message on the wire.
type Envelope[P any] struct {
	MessageID     string
	CorrelationID string
	MessageType   string
	Version       string
	Timestamp     time.Time
	Headers       Headers
	Payload       P
}

// Headers are the envelope's own headers, not those of AMQP.
type Headers struct {
	RetryCount    uint64
	SourceService string // empty: absent
	TraceID       string // a UUID; empty: absent
	// Extra holds every other key, kept as it was.
	Extra map[string]json.RawMessage
}

// New makes an envelope with fresh identifiers. at is the message's time,
// source the name of the service that sends it.
func New[P any](kind string, payload P, at time.Time, source string) Envelope[P] {
	id := newID()
	return Envelope[P]{
		MessageID: id, CorrelationID: id, MessageType: kind, Version: Version, Timestamp: at.UTC(),
		Headers: Headers{SourceService: source}, Payload: payload,
	}
}

func newID() string {
	if id, err := uuid.NewV7(); err == nil {
		return id.String()
	}
	return uuid.NewString()
}

// wire is the envelope's JSON as it is read.
type wire[P any] struct {
	MessageID     *string         `json:"message_id"`
	CorrelationID *string         `json:"correlation_id"`
	MessageType   string          `json:"message_type"`
	Version       *string         `json:"version"`
	Timestamp     *time.Time      `json:"timestamp"`
	Headers       json.RawMessage `json:"headers"`
	Payload       P               `json:"payload"`
}

// written is the envelope's JSON as Encode writes it, in the order of wire.
type written struct {
	MessageID     string    `json:"message_id"`
	CorrelationID string    `json:"correlation_id"`
	MessageType   string    `json:"message_type"`
	Version       string    `json:"version"`
	Timestamp     time.Time `json:"timestamp"`
	Headers       any       `json:"headers"`
	Payload       any       `json:"payload"`
}

// Encode writes the envelope.
func (e Envelope[P]) Encode() ([]byte, error) {
	body, err := jsonvalue.Encode(written{
		MessageID: e.MessageID, CorrelationID: e.CorrelationID, MessageType: e.MessageType, Version: e.Version,
		Timestamp: e.Timestamp.UTC(), Headers: e.Headers.encodable(), Payload: e.Payload,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", e.MessageType, e.MessageID, err)
	}
	return body, nil
}

// MarshalJSON implements json.Marshaler.
func (e Envelope[P]) MarshalJSON() ([]byte, error) { return e.Encode() }

// Decode reads an envelope with a payload of type P.
func Decode[P any](body []byte) (Envelope[P], error) {
	var e Envelope[P]
	if err := jsonvalue.CheckMessage(body); err != nil {
		return e, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	var w wire[P]
	if json.Unmarshal(body, &w) == nil && complete(&w.Payload) {
		return w.envelope()
	}
	// Read part by part, it says what is wrong with it.
	raw, err := DecodeRaw(body)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(raw.Payload, &e.Payload); err != nil {
		return e, fmt.Errorf("read payload of %s %s: %w", raw.MessageType, raw.MessageID, brief(err))
	}
	if err := check(raw.Payload, &e.Payload); err != nil {
		return e, fmt.Errorf("read payload of %s %s: %w", raw.MessageType, raw.MessageID, err)
	}
	e.MessageID, e.CorrelationID, e.MessageType = raw.MessageID, raw.CorrelationID, raw.MessageType
	e.Version, e.Timestamp, e.Headers = raw.Version, raw.Timestamp, raw.Headers
	return e, nil
}

// DecodeRaw reads an envelope and leaves its payload as it is.
func DecodeRaw(body []byte) (Envelope[json.RawMessage], error) {
	var e Envelope[json.RawMessage]
	if err := jsonvalue.CheckMessage(body); err != nil {
		return e, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	var w wire[json.RawMessage]
	if err := json.Unmarshal(body, &w); err != nil {
		return e, fmt.Errorf("%w: %w", ErrNotJSON, brief(err))
	}
	if e, err := w.envelope(); err != nil || bytes.HasPrefix(bytes.TrimSpace(w.Payload), []byte("{")) {
		return e, err
	}
	return e, fmt.Errorf("%w: payload, an object", ErrIncomplete)
}

// Limits of the envelope of a message that is read. Everything but the payload is kept with every
// message of a batch, or quoted in errors.
const (
	maxID      = 255 // bytes of an id or of the version; AMQP allows as many for its own
	maxHeaders = 64 << 10
)

// brief cuts an error that quotes the message.
func brief(err error) error {
	const most = 400
	if text := err.Error(); len(text) > most {
		return errors.New(strings.ToValidUTF8(text[:most], "") + " … (cut)")
	}
	return err
}

// envelope is what was read, if it has what every envelope has.
func (w *wire[P]) envelope() (Envelope[P], error) {
	var e Envelope[P]
	for _, id := range []*string{w.MessageID, w.CorrelationID, w.Version} {
		if id != nil && len(*id) > maxID {
			return e, fmt.Errorf("%w: an id or version of %d bytes; at most %d", ErrTooLarge, len(*id), maxID)
		}
	}
	if len(w.Headers) > maxHeaders {
		return e, fmt.Errorf("%w: headers have %d bytes; at most %d", ErrTooLarge, len(w.Headers), maxHeaders)
	}
	switch {
	case w.MessageType == "":
		return e, fmt.Errorf("%w: message_type", ErrIncomplete)
	case !slices.Contains(Types, w.MessageType):
		return e, fmt.Errorf("%w: %.80q", ErrUnknownType, w.MessageType)
	case w.Timestamp == nil:
		return e, fmt.Errorf("%w: timestamp", ErrIncomplete)
	}
	e.MessageType, e.Timestamp, e.Payload = w.MessageType, w.Timestamp.UTC(), w.Payload
	e.MessageID = orElse(w.MessageID, newID)
	e.CorrelationID = orElse(w.CorrelationID, newID)
	e.Version = orElse(w.Version, func() string { return Version })
	var err error
	if e.Headers, err = decodeHeaders(w.Headers); err != nil {
		return e, fmt.Errorf("read headers of %s %s: %w", e.MessageType, e.MessageID, err)
	}
	return e, nil
}

func orElse(value *string, other func() string) string {
	if value == nil || *value == "" {
		return other()
	}
	return *value
}
