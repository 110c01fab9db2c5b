package broker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// peekLimit bounds the messages of one Peek: all are held while it lasts.
const peekLimit = 1000

// ErrPeekQuorum is the error of peeking into a quorum queue, where every look
// counts as a delivery and may at last drop the message.
var ErrPeekQuorum = errors.New("only classic queues can be looked into without consequence")

// Peeked is a message that was looked at and left in its queue.
type Peeked struct {
	Exchange    string
	RoutingKey  string
	Redelivered bool
	// Properties are as the management API spells them: message_id,
	// timestamp, headers and so on.
	Properties map[string]any
	Body       []byte
	// Size is the size of the whole body, of which Body may be the beginning.
	Size int
}

// Peek looks at the first messages of a classic queue, at most n, and leaves
// them where they are, marked as redelivered. Bodies are cut after truncate
// bytes if that is above zero.
func (m *Management) Peek(ctx context.Context, queue string, n, truncate int) ([]Peeked, error) {
	info, err := m.Queue(ctx, queue)
	if err != nil {
		return nil, fmt.Errorf("peek into queue %s: %w", queue, err)
	}
	if info.Type != "" && info.Type != "classic" {
		return nil, fmt.Errorf("peek into queue %s: %w", queue, ErrPeekQuorum)
	}
	question := map[string]any{"count": min(max(n, 1), peekLimit), "ackmode": "ack_requeue_true", "encoding": "base64"}
	if truncate > 0 {
		question["truncate"] = truncate
	}
	var found []peeked
	path := "queues/" + url.PathEscape(m.vhost) + "/" + url.PathEscape(queue) + "/get"
	if err := m.post(ctx, path, question, &found); err != nil {
		return nil, fmt.Errorf("peek into queue %s: %w", queue, err)
	}
	messages := make([]Peeked, len(found))
	for i, f := range found {
		if messages[i], err = f.decode(); err != nil {
			return nil, fmt.Errorf("peek into queue %s: %w", queue, err)
		}
	}
	return messages, nil
}

// peeked is a message as the management API writes it.
type peeked struct {
	Exchange    string          `json:"exchange"`
	RoutingKey  string          `json:"routing_key"`
	Redelivered bool            `json:"redelivered"`
	Properties  json.RawMessage `json:"properties"`
	Payload     string          `json:"payload"`
	Size        int             `json:"payload_bytes"`
}

func (p peeked) decode() (Peeked, error) {
	body, err := base64.StdEncoding.DecodeString(p.Payload)
	if err != nil {
		return Peeked{}, fmt.Errorf("read a body: %w", err)
	}
	var properties map[string]any
	// Without any property the API writes an empty list instead of an object.
	_ = json.Unmarshal(p.Properties, &properties)
	return Peeked{
		Exchange: p.Exchange, RoutingKey: p.RoutingKey, Redelivered: p.Redelivered,
		Properties: properties, Body: body, Size: p.Size,
	}, nil
}

// post makes one call with a body.
func (m *Management) post(ctx context.Context, path string, question, into any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return m.send(ctx, http.MethodPost, path, header, bytes.NewReader(body), into)
}
