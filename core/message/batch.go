package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Limits of a batch. A batch that is read must keep them too: each of its items becomes a message with
// a copy of the envelope.
const (
	MaxBatchItems = 200
	MaxBatchBytes = 256 << 10
)

// Batch is the payload of a message that contains several: each item is the payload of one. All are
// of one type, and dispatches of one batch are for one worker.
type Batch struct {
	Executions []json.RawMessage `json:"executions"`
}

// Single is a message in a batch, as it would have been sent alone. Its MessageID derives from the
// batch's and is the same whenever the batch is split.
type Single struct {
	MessageID string
	Type      string
	Body      []byte
	Payload   json.RawMessage // part of the body
}

// singles maps batch types to the types of their messages.
var singles = map[string]string{
	TypeExecutionBatchRequested: TypeExecutionRequested,
	TypeExecutionBatchCompleted: TypeExecutionCompleted,
}

// IsBatch reports whether messages of a type are batches.
func IsBatch(kind string) bool { return singles[kind] != "" }

// batchRoom is reserved for the envelope in MaxBatchBytes, and bounds it.
const batchRoom = 1 << 10

// Batches encodes payloads into as few messages as the limits of a batch allow, in order. kind is
// the type of a batch. A payload alone becomes a single message, whatever its size.
func Batches[P any](kind string, payloads []P, at time.Time, source string) ([]Encoded, error) {
	var messages []Encoded
	var items []json.RawMessage
	size := 0
	flush := func() (err error) {
		var one Encoded
		switch len(items) {
		case 0:
			return nil
		case 1:
			one, err = encoded(New(singles[kind], items[0], at, source))
		default:
			one, err = encoded(New(kind, Batch{Executions: items}, at, source))
		}
		one.Items = len(items)
		messages, items, size = append(messages, one), nil, 0
		return err
	}
	for i := range payloads {
		raw, err := jsonvalue.Encode(&payloads[i])
		if err != nil {
			return nil, fmt.Errorf("encode item %d of a %s: %w", i, kind, err)
		}
		if len(items) == MaxBatchItems || size+len(raw)+1 > MaxBatchBytes-batchRoom {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		items, size = append(items, raw), size+len(raw)+1
	}
	return messages, flush()
}

// Encoded is an envelope that is ready to send.
type Encoded struct {
	ID    string // also the correlation id
	Type  string
	Body  []byte
	Items int // number of executions
}

func encoded[P any](e Envelope[P]) (Encoded, error) {
	body, err := e.Encode()
	return Encoded{ID: e.MessageID, Type: e.MessageType, Body: body}, err
}

// Split returns the messages of a batch. The reader of each message checks its payload.
func Split(body []byte) ([]Single, error) {
	if len(body) > MaxBatchBytes {
		return nil, fmt.Errorf("%w: a batch of %d bytes; at most %d", ErrTooLarge, len(body), MaxBatchBytes)
	}
	batch, err := Decode[Batch](body)
	if err != nil {
		return nil, err
	}
	kind := singles[batch.MessageType]
	switch n := len(batch.Payload.Executions); {
	case kind == "":
		return nil, fmt.Errorf("%w: %s is no batch", ErrUnknownType, batch.MessageType)
	case n == 0:
		return nil, fmt.Errorf("%w: executions", ErrIncomplete)
	case n > MaxBatchItems:
		return nil, fmt.Errorf("%w: a batch of %d executions; at most %d", ErrTooLarge, n, MaxBatchItems)
	}
	// The envelopes differ only in the id and the payload, which stand first and last.
	frame, err := Envelope[json.RawMessage]{
		CorrelationID: batch.CorrelationID, MessageType: kind, Version: batch.Version,
		Timestamp: batch.Timestamp, Headers: batch.Headers, Payload: json.RawMessage("{}"),
	}.Encode()
	if err != nil {
		return nil, err
	}
	const head, tail = `{"message_id":"`, `{}}`
	frame = bytes.TrimSuffix(bytes.TrimPrefix(frame, []byte(head)), []byte(tail))
	if len(frame) > batchRoom {
		return nil, fmt.Errorf("%w: a batch with an envelope of %d bytes; at most %d", ErrTooLarge, len(frame),
			batchRoom)
	}
	list := make([]Single, len(batch.Payload.Executions))
	for i, payload := range batch.Payload.Executions {
		id := uuid.NewSHA1(uuid.Nil, []byte(batch.MessageID+"/"+strconv.Itoa(i))).String()
		one := make([]byte, 0, len(head)+len(id)+len(frame)+len(payload)+1)
		one = append(append(append(one, head...), id...), frame...)
		at := len(one)
		one = append(append(one, payload...), '}')
		list[i] = Single{MessageID: id, Type: kind, Body: one, Payload: one[at : len(one)-1]}
	}
	return list, nil
}

// DecodePayload reads a payload as Decode does, for a caller that has its envelope.
func DecodePayload[P any](raw json.RawMessage) (P, error) {
	var payload P
	if err := json.Unmarshal(raw, &payload); err != nil {
		return payload, fmt.Errorf("%w: payload: %w", ErrNotJSON, brief(err))
	}
	return payload, check(raw, &payload)
}
