package deadletter

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// whyNotKept are the reasons why a message that is sent again lacks a property or header that it had.
var whyNotKept = map[string]string{
	"expiration":               "it would expire again",
	"user_id":                  "the broker accepts it only from the same login",
	"x-death":                  "only the broker writes about deaths",
	"cc":                       "the message would also go to other queues again",
	"bcc":                      "the message would also go to other queues again",
	"reply_to":                 "it belongs to a connection that is closed",
	broker.HeaderUnreadable:    "the AMQP library cannot read its headers: they are in this one",
	"x-delivery-count":         "only the broker counts deliveries",
	"all but message_id, type": "an earlier version of attune-executor recorded the dead letter",
}

// oldNotKept is all that is not kept of a dead letter without recorded properties.
const oldNotKept = "all but message_id, type"

func notKept(name string) string {
	why, known := whyNotKept[strings.ToLower(name)]
	if !known {
		why = "its value was cut"
	}
	return name + ": " + why
}

// NotKept says what of its properties and headers a message loses when it is sent again. recorded says
// whether the ledger has its properties, lost is what it has about them.
func NotKept(recorded bool, lost []string) []string {
	if !recorded {
		return []string{notKept(oldNotKept)}
	}
	return lost
}

// directReplyTo is the reply-to of a request on whose channel the broker expects the reply.
const directReplyTo = "amq.rabbitmq.reply-to"

// cutValue is the value of a header that was too large for the copy of a message.
var cutValue = regexp.MustCompile(`^cut: \d+ bytes$`)

// ownHeaders are the headers of the engine's dead letters, which a message does not carry when it is
// sent again.
var ownHeaders = []string{
	broker.HeaderReason, broker.HeaderAttempts, broker.HeaderReplica, broker.HeaderQueue, broker.HeaderExchange,
	broker.HeaderKey, broker.HeaderDied, broker.HeaderDropped, headerPutBack,
}

// original are the properties of the message as it was sent, its expiration, and what of them it loses
// when it is sent again.
func (l *Message) original() (p broker.Properties, expiration string, lost []string) {
	d := l.delivery
	p, expiration = d.Properties, d.Expiration
	p.Headers = maps.Clone(d.Headers)
	lose := func(name string) { lost = append(lost, notKept(name)) }
	for _, death := range broker.Deaths(d.Headers) {
		expiration = cmp.Or(expiration, death.Expiration) // the broker took it away
	}
	_, copied := d.Headers[broker.HeaderReason]
	for name, value := range d.Headers {
		lower := strings.ToLower(name)
		death := strings.HasPrefix(lower, "x-first-death-") || strings.HasPrefix(lower, "x-last-death-")
		text, _ := value.(string)
		switch {
		case slices.Contains(ownHeaders, name), death:
			delete(p.Headers, name)
		case lower == "x-death", lower == "cc", lower == "bcc", lower == "x-delivery-count":
			delete(p.Headers, name)
			lose(name)
		case name == broker.HeaderUnreadable, copied && cutValue.MatchString(text):
			lose(name)
		}
	}
	dropped, _ := d.Headers[broker.HeaderDropped].(broker.Table)
	for name, value := range dropped {
		switch text, _ := value.(string); name {
		case "message_id":
			p.MessageID = text
		case "user_id":
			p.UserID = text
		case "expiration":
			expiration = text
		case "delivery_mode":
			p.DeliveryMode, _ = value.(uint8)
		default:
			lose(name)
		}
	}
	if expiration != "" {
		lose("expiration")
	}
	if p.UserID != "" {
		lose("user_id")
	}
	if p.ReplyTo == directReplyTo {
		lose("reply_to")
	}
	slices.Sort(lost)
	return p, expiration, slices.Compact(lost)
}

// resend is the message of a dead letter to send again, with a header about it.
func resend(row *store.LockDeadLetterRow, exchange, key, header, value string) (outbox.Message, error) {
	m := outbox.Message{
		ID: cmp.Or(row.MessageID, uuid.NewString()), Type: row.MessageType, Exchange: exchange, RoutingKey: key,
		Body: row.Body,
	}
	if row.Cut {
		return m, fmt.Errorf("%w: dead letter %d has only the beginning of its body", ErrNoMessage, row.ID)
	}
	if row.Properties == "" { // an earlier version recorded it
		m.Trace = outbox.HeaderTrace(header, value)
		return m, nil
	}
	raw, err := base64.StdEncoding.DecodeString(row.Properties)
	if err == nil {
		m.Properties, err = broker.DecodeProperties(raw)
	}
	if err != nil {
		return m, fmt.Errorf("%w: dead letter %d: %w", ErrNoMessage, row.ID, err)
	}
	m.Properties.Headers[header] = value
	if header == headerRequeuedFrom {
		m.Properties.Headers[headerDeaths] = row.AllDeaths
	}
	if m.Properties.ReplyTo == directReplyTo {
		m.Properties.ReplyTo = "" // the broker refuses it
	}
	return m, nil
}

// MaxRefusals is how often the broker may refuse a message that an operator sends again: half a minute.
const MaxRefusals = 6

// outboxName is the author of the decision to reopen a dead letter.
const outboxName = "outbox"

// Refused implements outbox.Config.Refused: a message that the broker has refused too often is a dead
// letter again. Its row of the ledger waits, as it was before the operator decided about it.
func Refused(ctx context.Context, tx *store.Tx, m outbox.Message, tries int, reason string) (bool, error) {
	if tries < MaxRefusals {
		return false, nil
	}
	var was putBack
	id, err := strconv.ParseInt(m.Header(headerRequeuedFrom), 10, 64)
	if text := m.Header(headerPutBack); text != "" {
		err = json.Unmarshal([]byte(text), &was)
		id = was.Row
	}
	if err != nil {
		return false, fmt.Errorf("find the dead letter of message %s: %w", m.ID, err)
	}
	detail := clean(bounded(fmt.Sprintf("the broker did not accept it for %s: %s",
		phrase.Destination(m.Exchange, m.RoutingKey), reason)))
	opened, err := tx.DecideDeadLetters(ctx, store.DecideDeadLettersParams{
		Ids: []int64{id}, Decision: reopened, DecidedBy: outboxName, Note: detail,
		Among: []string{Requeued, Sent, PutBack},
	})
	if err == nil && len(opened) > 0 {
		err = tx.DetailDeadLetter(ctx, detail, id)
	}
	if err != nil {
		return false, fmt.Errorf("reopen dead letter %d: %w", id, err)
	}
	return len(opened) > 0, nil
}
