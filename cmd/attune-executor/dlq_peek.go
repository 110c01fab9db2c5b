package main

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
)

// maxPeekBody bounds each body that is looked at, in bytes.
const maxPeekBody = 64 << 10

// peeked is a message of the broker's queue as `dlq list --broker` shows it.
type peeked struct {
	Type       string         `json:"type"`
	What       string         `json:"what"`
	MessageID  string         `json:"message_id,omitempty"`
	Exchange   string         `json:"exchange"`
	RoutingKey string         `json:"routing_key"`
	Reason     string         `json:"reason"`
	Queue      string         `json:"queue,omitempty"`
	Size       int            `json:"size"`
	Headers    map[string]any `json:"headers,omitempty"`
	Body       *string        `json:"body,omitempty"`
	BodyBase64 string         `json:"body_base64,omitempty"`
}

// peekView is what `dlq list --broker` prints as data.
type peekView struct {
	Queue     string   `json:"queue"`
	Ready     int      `json:"ready"`
	Consumers int      `json:"consumers"`
	List      []peeked `json:"list"`
}

// peekLetters looks into the dead-letter queue of the broker and leaves all where
// it is. No database is needed.
func (a *app) peekLetters(cmd *cobra.Command, limit int, beside bool) error {
	logger, err := a.logger("warn")
	if err != nil {
		return err
	}
	cfg, err := a.load(cmd.Context(), logger)
	if err != nil {
		return err
	}
	m, _, err := (&client{cfg: cfg}).management()
	if err != nil {
		return err
	}
	if m == nil {
		return usageErrorf("--broker needs the management API: name it in message_queue.management_url")
	}
	defer m.Close()
	info, err := m.Queue(cmd.Context(), monitor.DeadLetterQueue)
	if errors.Is(err, broker.ErrNotFound) {
		return failedErrorf("there is no queue %s: an engine declares it when it starts, and until then what dies is lost", monitor.DeadLetterQueue)
	}
	if err != nil {
		return managementError(cfg, err)
	}
	view := peekView{Queue: monitor.DeadLetterQueue, List: []peeked{}}
	if info.Ready != nil {
		view.Ready = *info.Ready
	}
	if info.Consumers != nil {
		view.Consumers = *info.Consumers
	}
	if view.Consumers > 0 && !beside {
		return refusedErrorf("%s of %s: what arrives is in `attune-executor dlq list` at once; --yes looks beside it, which delays what it looks at",
			count(view.Consumers, "handler")+" takes the letters", monitor.DeadLetterQueue)
	}
	messages, err := m.Peek(cmd.Context(), monitor.DeadLetterQueue, limit, maxPeekBody)
	if errors.Is(err, broker.ErrPeekQuorum) {
		return refusedErrorf("%w", err)
	}
	if err != nil {
		return managementError(cfg, err)
	}
	for _, one := range messages {
		view.List = append(view.List, peekedOf(one))
	}
	return a.print(cmd, view, func(w io.Writer) error { return peekTable(w, view, limit) })
}

// managementError says which management API does not answer, in one line.
func managementError(cfg *config.Config, err error) error {
	if answer, ok := errors.AsType[*broker.ManagementError](err); ok {
		return failedErrorf("look into %s: %w", monitor.DeadLetterQueue, answer)
	}
	return &exitError{exitUnreachable, fmt.Errorf("the management API %s does not answer (%w): correct message_queue.management_url (%s)",
		config.MaskURL(cfg.MessageQueue.ManagementURL), err, cfg.Source("message_queue.management_url"))}
}

func peekedOf(one broker.Peeked) peeked {
	property := func(name string) string { text, _ := one.Properties[name].(string); return text }
	headers, _ := one.Properties["headers"].(map[string]any)
	p := peeked{
		Type: cmp.Or(property("type"), "-"), MessageID: property("message_id"), Exchange: one.Exchange, RoutingKey: one.RoutingKey,
		Size: one.Size, Headers: headers, Reason: "-",
	}
	p.What = monitor.LetterKind(p.Type, p.RoutingKey)
	if deaths, _ := headers["x-death"].([]any); len(deaths) > 0 {
		death, _ := deaths[0].(map[string]any)
		p.Queue, _ = death["queue"].(string)
		reason, _ := death["reason"].(string)
		p.Reason = cmp.Or(reason, "-")
	}
	if utf8.Valid(one.Body) {
		p.Body = new(string(one.Body))
	} else {
		p.BodyBase64 = base64.StdEncoding.EncodeToString(one.Body)
	}
	return p
}

func peekTable(w io.Writer, view peekView, limit int) error {
	if len(view.List) == 0 {
		text := "nothing lies in " + view.Queue
		if view.Consumers == 0 {
			text += ", and nobody takes what arrives there"
		}
		return row(w, text)
	}
	cells := [][]string{{"NO", "WHAT", "REASON", "BYTES", "KEY", "FROM"}}
	for i, p := range view.List {
		cells = append(cells, []string{fmt.Sprint(i + 1), p.What, p.Reason, fmt.Sprint(p.Size), dash(p.RoutingKey), dash(p.Queue)})
	}
	for _, line := range fit(cells, 4, 5) {
		if err := row(w, line...); err != nil {
			return err
		}
	}
	lines := []string{"they were only looked at and stay where they are"}
	if len(view.List) == limit && view.Ready > limit {
		lines = append(lines, fmt.Sprintf("more: %d lie there, raise --limit", view.Ready))
	}
	return row(w, strings.Join(lines, "; "))
}
