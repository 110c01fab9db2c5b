package deadletters

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// content is the message of a dead letter.
type content struct {
	*monitor.LedgerDetail

	version    string
	deaths     []death
	payload    json.RawMessage
	properties map[string]any
	raw        string
	sentBefore string // says that it was sent again and died again
}

// death is an entry of the history in the message headers.
type death struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	Reason      string    `json:"reason"`
	RoutingKeys []string  `json:"routing-keys"`
	Count       int64     `json:"count"`
	Time        time.Time `json:"time"`
	Expiration  string    `json:"original-expiration"`
}

func newContent(d *monitor.LedgerDetail) *content {
	c := &content{
		LedgerDetail: d, raw: d.Body.Text, properties: map[string]any{
			"exchange": d.Exchange, "routing_key": d.RoutingKey, "message_id": d.MessageID,
			"correlation_id": d.CorrelationID, "type": d.Type,
			"fingerprint": d.Fingerprint, "stored": d.LedgerEntry.At, "evidence": d.Evidence,
		},
	}
	_ = json.Unmarshal(d.XDeath, &c.deaths) // an unknown format is shown among the headers
	switch d.Body.Format {
	case "json":
		c.raw = string(d.Body.JSON)
		var envelope struct {
			Version string          `json:"version"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(d.Body.JSON, &envelope) == nil {
			c.version, c.payload = envelope.Version, envelope.Payload
		}
	case "binary":
		c.raw = hex.Dump(d.Body.Base64)
	}
	var h struct {
		Count int64  `json:"x-attune-requeue-count"`
		By    string `json:"x-attune-requeue-by"`
		At    string `json:"x-attune-requeue-at"`
		From  string `json:"x-attune-requeued-from"`
	}
	switch {
	case json.Unmarshal(d.Headers, &h) != nil:
	case h.From != "":
		c.sentBefore = "it was sent again before, as dead letter " + h.From + ", and died again"
	case h.By != "":
		c.sentBefore = phrase.Ordinal(max(1, h.Count)+1) + " time: sent again by " + h.By + " at " + dash(h.At) +
			", died again"
	}
	return c
}

// sections are the documents of a dead letter.
var sections = []string{"payload", "headers", "properties", "raw"}

// document is the text of a section.
func (c *content) document(section int) string {
	var value any
	switch sections[section] {
	case "payload":
		if len(c.payload) == 0 {
			return "this is no message of the engine: the section raw shows it unchanged"
		}
		return string(c.payload)
	case "headers":
		value = c.Headers
	case "properties":
		value = c.properties
	default:
		return c.raw
	}
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil || string(raw) == "null" {
		return "none"
	}
	return string(raw)
}
