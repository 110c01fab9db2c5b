package deadletter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"math"
	"time"
)

// columns are the arguments of store.RecordDeadLetter, in their order.
func (l *Message) columns(v verdict) []any {
	d := l.delivery
	xDeath, headers := l.headers()
	body := d.Body[:min(len(d.Body), MaxBody)]
	if body == nil {
		body = []byte{} // the column is not null
	}
	if l.reduced {
		xDeath, headers = nil, nil
	}
	var status *string
	var actionRef string
	var attempt *int32
	if e := l.seen.execution; e != nil && e.Status.Valid() {
		text := string(e.Status)
		status, actionRef, attempt = &text, e.ActionRef, &e.Attempt
	}
	if l.attempt != 0 {
		attempt = &l.attempt
	}
	var died *time.Time
	if sane(l.died) {
		died = &l.died
	}
	var by *string
	if v.decision != "" {
		by = orNil(HandledBy)
	}
	return []any{
		l.fingerprint, orNil(d.MessageID), orNil(d.CorrelationID), orNil(l.typed()),
		orNil(l.exchange), orNil(l.key), orNil(l.queue), orNil(l.reason), died,
		xDeath, headers, body, idOrNil(l.Execution), status, orNil(actionRef), attempt, idOrNil(l.worker),
		orNil(v.decision), by, orNil(bounded(v.detail)), []byte(encode(l.evidence())),
	}
}

// headers splits the headers of the message into its death history and the rest.
func (l *Message) headers() (xDeath, others []byte) {
	const history = "x-death"
	if l.delivery.Headers == nil {
		return nil, nil
	}
	rest := maps.Clone(l.delivery.Headers)
	if deaths, ok := rest[history]; ok {
		xDeath = jsonOf(deaths)
		delete(rest, history)
	}
	return xDeath, jsonOf(rest)
}

// sane reports whether the database can store the time.
func sane(at time.Time) bool { return !at.IsZero() && at.Year() > 1970 && at.Year() < 10_000 }

// maxDetail bounds the reason of a decision.
const maxDetail = 2000

func bounded(s string) string { return s[:min(len(s), maxDetail)] }

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	s = clean(s)
	return &s
}

func idOrNil(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

// evidence is what was known at the time of the decision.
func (l *Message) evidence() map[string]any {
	d := l.delivery
	body := map[string]any{"bytes": len(d.Body)}
	if len(d.Body) > MaxBody {
		digest := sha256.Sum256(d.Body)
		body["cut"], body["kept"], body["sha256"] = true, MaxBody, hex.EncodeToString(digest[:])
	}
	known := map[string]any{"body": body, "message": l.properties()}
	if l.reduced {
		known["reduced"] = l.reduction()
	}
	if len(l.others) > 0 {
		known["alike"] = map[string]any{"count": 1 + len(l.others), "executions": l.others}
	}
	if t := l.taking; t != nil {
		known["taken"] = map[string]any{
			"queue": t.Queue, "by": text(clean(t.By)), "at": time.Now().UTC(), "note": text(clean(bounded(t.Note))),
			"op": t.Op,
		}
	}
	if e := l.seen.execution; e != nil && e.Status.Valid() {
		e.ActionRef = clean(e.ActionRef)
		known["execution"] = e
	}
	if w := l.seen.worker; w != nil {
		about := map[string]any{
			"id": w.ID, "name": clean(w.Name), "status": w.Status, "cordoned": w.Cordoned, "draining": w.Draining,
		}
		if !math.IsInf(w.HeartbeatAge, 0) {
			about["heartbeat_age_seconds"] = w.HeartbeatAge
		}
		if w.SuspectReason != "" {
			about["suspect"] = w.SuspectReason
		}
		known["worker"] = about
		if w.Probed != nil {
			known["probe"] = map[string]any{
				"verdict": w.Verdict, "reason": w.Reason, "health": w.Health, "consumers": w.Consumers,
				"ready": w.Ready, "at": w.Probed.UTC(),
			}
		}
	}
	if !l.handed.IsZero() && sane(l.handed) {
		known["handed_over"] = l.handed.UTC()
	}
	return known
}

// properties are the properties of the message besides its headers, and as amqp exactly all of them.
func (l *Message) properties() map[string]any {
	d := l.delivery
	p, expiration, lost := l.original()
	about := map[string]any{
		"redelivered": d.Redelivered, "amqp": base64.StdEncoding.EncodeToString(p.Encode()), "not_kept": lost,
	}
	for name, value := range map[string]string{
		"content_type": p.ContentType, "content_encoding": p.ContentEncoding, "app_id": p.AppID,
		"reply_to": p.ReplyTo, "user_id": p.UserID, "expiration": expiration,
		"came_as": d.RoutingKey, "came_by": d.Exchange, "given_up": l.said, "undecided": l.failure,
	} {
		if value != "" {
			about[name] = text(clean(value))
		}
	}
	for name, value := range map[string]uint8{"priority": p.Priority, "delivery_mode": p.DeliveryMode} {
		if value != 0 {
			about[name] = value
		}
	}
	if sane(d.Timestamp) {
		about["timestamp"] = d.Timestamp.UTC()
	}
	return about
}

// reduction replaces the headers of a dead letter that the database refuses.
func (l *Message) reduction() map[string]any {
	headers := jsonOf(l.delivery.Headers)
	digest := sha256.Sum256(headers)
	return map[string]any{"headers": binary(headers), "headers_sha256": hex.EncodeToString(digest[:])}
}
