package deadletters

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
)

// letter is all that a message carries, made once of what was read.
type letter struct {
	of      *monitor.LedgerDetail
	row     row
	version string
	deaths  []death
	// documents are the texts of the sections.
	documents [len(sections)]string
	// again says for which time it would be sent again, and what is known of the last.
	again string
	said  says
}

// sections are the documents of a letter.
var sections = [...]string{"payload", "headers", "properties", "raw"}

// death is one entry of the history that the broker writes.
type death struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	Reason      string    `json:"reason"`
	RoutingKeys []string  `json:"routing-keys"`
	Count       int64     `json:"count"`
	Time        time.Time `json:"time"`
	Expiration  string    `json:"original-expiration"`
}

// sentBefore says that a message was sent again before; empty for the first time.
func sentBefore(headers json.RawMessage) string {
	var h struct {
		Count int64  `json:"x-attune-requeue-count"`
		By    string `json:"x-attune-requeue-by"`
		At    string `json:"x-attune-requeue-at"`
		From  string `json:"x-attune-requeued-from"`
	}
	switch {
	case json.Unmarshal(headers, &h) != nil:
		return ""
	case h.From != "":
		return "it was sent again before, as dead letter " + h.From + ", and died again"
	case h.By != "":
		return act.Ordinal(max(1, h.Count)+1) + " time: sent again by " + h.By + " at " + dash(h.At) + ", died again"
	default:
		return ""
	}
}

func readLetter(d *monitor.LedgerDetail) *letter {
	l := &letter{of: d, row: ledgerRow(&d.LedgerEntry), again: sentBefore(d.Headers)}
	_ = json.Unmarshal(d.XDeath, &l.deaths) // what has another shape is among the headers
	payload, raw := "nobody can read it as a message: the section raw has it as it is", d.Body.Text
	switch d.Body.Format {
	case "json":
		raw = string(d.Body.JSON)
		var envelope struct {
			Version string          `json:"version"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(d.Body.JSON, &envelope) == nil {
			l.version = envelope.Version
			if len(envelope.Payload) > 0 {
				payload = string(envelope.Payload)
			}
			if json.Unmarshal(envelope.Payload, &l.said) != nil {
				l.said = says{} // it is no request
			}
		}
	case "binary":
		raw = hex.Dump(d.Body.Base64)
	}
	l.documents = [...]string{payload, indented(d.Headers), indented(map[string]any{
		"exchange": d.Exchange, "routing_key": d.RoutingKey, "message_id": d.MessageID,
		"correlation_id": d.CorrelationID, "type": d.Type, "fingerprint": d.Fingerprint,
		"stored": d.LedgerEntry.At, "evidence": d.Evidence,
	}), raw}
	return l
}

// indented is a document for people.
func indented(value any) string {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil || string(raw) == "null" {
		return "none"
	}
	return string(raw)
}

// says are the fields of a payload that rows have too.
type says struct {
	ExecutionID *int64     `json:"execution_id"`
	ActionRef   string     `json:"action_ref"`
	WorkerID    *int64     `json:"worker_id"`
	AttemptAt   *time.Time `json:"scheduled_attempt_updated_at"`
	Attempt     *int64     `json:"attempt"`
}
