package redrive

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

var at = time.Date(2026, 11, 21, 1, 52, 0, 201_000_000, time.UTC)

// dispatched is a hand-over to worker 7 that expired.
func dispatched(t *testing.T, execution int64) *Whole {
	t.Helper()
	body, err := message.New(message.TypeExecutionRequested, message.Dispatch{
		ExecutionID: execution, WorkerID: 7, ActionRef: "core.http_request", ScheduledAttemptUpdatedAt: at,
	}, at, "test").Encode()
	require.NoError(t, err)
	return &Whole{
		MessageID: "m", RoutingKey: message.DispatchKey(7), Exchange: message.ExchangeDeadLetter, Type: message.TypeExecutionRequested, Body: body,
		Headers: broker.Table{"x-death": []any{broker.Table{
			"queue": "worker.7.executions", "exchange": message.ExchangeExecutions, "reason": "expired", "count": int64(1), "time": at.Add(5 * time.Minute),
			"routing-keys": []any{message.DispatchKey(7)},
		}}},
	}
}

func TestALetterSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	l := Read(dispatched(t, 884301), 3)
	require.Empty(t, l.Trouble)
	require.Equal(t, int64(884301), l.Execution)
	require.Equal(t, int64(7), l.Worker)
	require.True(t, l.Dispatch)
	require.Equal(t, []string{"expired", "worker.7.executions", message.ExchangeExecutions, message.DispatchKey(7), "core.http_request"},
		[]string{l.Reason, l.From, l.SentTo, l.SentKey, l.ActionRef})
	require.Equal(t, at.Add(5*time.Minute), l.Died)
	require.True(t, l.AttemptAt.Equal(at))

	other := dispatched(t, 884302)
	require.NotEqual(t, l.Key(), new(Read(other, 0)).Key(), "the same id with another body is another letter")
	garbage := Read(&Whole{Body: []byte("\x00\x01"), RoutingKey: "k"}, 0)
	require.NotEmpty(t, garbage.Trouble)
	require.Contains(t, garbage.Name(), "without id, 2 bytes")
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	letter := func(change func(*Letter)) *Letter {
		l := Read(dispatched(t, 5), 0)
		if change != nil {
			change(&l)
		}
		return &l
	}
	row := func(change func(*Row)) *Row {
		r := &Row{ID: 5, Status: "failed", Expired: true, ActionRef: "a.b", Updated: at.Add(time.Hour)}
		if change != nil {
			change(r)
		}
		return r
	}
	about := func(l *Letter, r *Row) Facts { return Facts{Letter: l, Row: r, Known: true} }
	kind := func(kind string) *Letter { return letter(func(l *Letter) { l.Kind, l.Dispatch = kind, false }) }
	for name, c := range map[string]struct {
		facts Facts
		want  string
		why   string
	}{
		"undecodable":         {about(letter(func(l *Letter) { l.Trouble = "not JSON" }), nil), Export, "not JSON"},
		"an event":            {about(letter(func(l *Letter) { l.Execution, l.SentTo, l.SentKey = 0, "attune.events", "event.created" }), nil), Replay, "attune.events"},
		"nowhere sent":        {about(letter(func(l *Letter) { l.Execution, l.SentTo, l.SentKey = 0, "", "" }), nil), Export, "where it was sent"},
		"not asked":           {Facts{Letter: letter(nil)}, Unknown, ""},
		"row missing":         {about(letter(nil), nil), Stale, "does not exist"},
		"failed by TTL":       {about(letter(nil), row(nil)), Requeue, "expired"},
		"failed otherwise":    {about(letter(nil), row(func(r *Row) { r.Expired = false })), Stale, "failed"},
		"completed":           {about(letter(nil), row(func(r *Row) { r.Status, r.Expired = "completed", false })), Stale, "completed"},
		"running":             {about(letter(nil), row(func(r *Row) { r.Status, r.Expired = "running", false })), Stale, "running"},
		"its attempt":         {about(letter(nil), row(func(r *Row) { r.Status, r.Expired, r.Updated = "scheduled", false, at })), Requeue, "still scheduled"},
		"a newer attempt":     {about(letter(nil), row(func(r *Row) { r.Status, r.Expired = "scheduled", false })), Stale, "scheduled"},
		"reset, unsent":       {about(letter(nil), row(func(r *Row) { r.Status, r.Expired, r.RetryReason = "requested", false, "manual_retry" })), Publish, "safe"},
		"action deleted":      {about(letter(nil), row(func(r *Row) { r.ActionGone = true })), Blocked, "deleted"},
		"parent ended":        {about(letter(nil), row(func(r *Row) { r.Parent, r.ParentStatus = new(int64(2)), "failed" })), Blocked, "execution 2"},
		"parent runs":         {about(letter(nil), row(func(r *Row) { r.Parent, r.ParentStatus = new(int64(2)), "running" })), Requeue, ""},
		"tries used up":       {about(letter(nil), row(func(r *Row) { r.Tries, r.MaxTries = 3, new(int64(3)) })), Blocked, "3 of 3"},
		"leased elsewhere":    {about(letter(nil), row(func(r *Row) { r.Lease = &Lease{Item: 12, Holder: 99} })), Blocked, "item of work 12 is leased to execution 99"},
		"leased to somebody":  {about(letter(nil), row(func(r *Row) { r.Lease = &Lease{Item: 12} })), Blocked, "is leased elsewhere"},
		"no tries asked for":  {about(letter(nil), row(func(r *Row) { r.MaxTries = new(int64(0)) })), Requeue, ""},
		"handled":             {Facts{Row: row(nil), Known: true}, Requeue, ""},
		"handled, moved on":   {Facts{Row: row(func(r *Row) { r.Expired = false }), Known: true}, Stale, ""},
		"a report, ended":     {about(kind(message.TypeExecutionCompleted), row(nil)), Stale, "has ended"},
		"a report, running":   {about(kind(message.TypeExecutionCompleted), row(func(r *Row) { r.Status = "running" })), Replay, ""},
		"a request":           {about(kind(message.TypeExecutionRequested), row(func(r *Row) { r.Status = "requested" })), Replay, "still requested"},
		"an obsolete request": {about(kind(message.TypeExecutionRequested), row(nil)), Stale, "moved on"},
		"with our tables":     {Facts{Letter: letter(nil), Row: row(nil), Known: true, Ours: true}, Engine, "ledger"},
	} {
		got := Judge(c.facts)
		require.Equal(t, c.want, got.Do, "%s: %s", name, got.Why)
		require.Contains(t, got.Why, c.why, name)
	}
}

func TestHowAQueueIsLookedInto(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q       Queue
		back    broker.Return
		highest int64
		refused bool
	}{
		"classic":               {Queue{Type: "classic", Version: "3.10.8"}, broker.ReturnByNack, 0, false},
		"quorum, no limit":      {Queue{Type: "quorum", Version: "3.13.7"}, broker.ReturnByClose, 0, false},
		"quorum, limit":         {Queue{Type: "quorum", Version: "3.13.7", Limit: 10}, broker.ReturnByNack, 7, false},
		"quorum, 4.0 by itself": {Queue{Type: "quorum", Version: "4.0.5"}, broker.ReturnByNack, 17, false},
		"quorum, 4.2":           {Queue{Type: "quorum", Version: "4.2.1", Limit: 5}, broker.ReturnByNack, 2, false},
		"quorum, 4.3":           {Queue{Type: "quorum", Version: "4.3.0", Limit: 5}, broker.ReturnByNack, 0, false},
		"stream":                {Queue{Type: "stream", Version: "4.0.0"}, 0, 0, true},
		"single active":         {Queue{Type: "quorum", Version: "4.3.0", SingleActive: true}, 0, 0, true},
		"nothing known":         {Queue{}, broker.ReturnByNack, 17, false},
		"version unknown":       {Queue{Type: "quorum", Limit: 6}, broker.ReturnByNack, 3, false},
	} {
		way, err := Strategy(&c.q)
		require.Equal(t, c.refused, err != nil, name)
		require.Equal(t, c.back, way.Return, name)
		require.Equal(t, c.highest, way.Highest, name)
		require.Equal(t, !c.refused, way.Cost != "", name)
	}
}

func TestSpooledHeadersKeepTheirTypes(t *testing.T) {
	t.Parallel()
	w := dispatched(t, 1)
	w.Timestamp, w.Priority, w.AppID, w.UserID, w.Expiration, w.DeliveryMode = at.Truncate(time.Second), 3, "app", "guest", "60000", 2
	maps.Copy(w.Headers, broker.Table{
		"none": nil, "bool": true, "i8": int8(-3), "u8": uint8(200), "i16": int16(-300), "u16": uint16(65000), "i32": int32(-70000), "u32": uint32(4e9),
		"i64": int64(9007199254740993), "f32": float32(1.5), "f64": 2.25, "text": "a\x00\xffb", "bytes": []byte{0, 255}, "time": at.Truncate(time.Second),
		"decimal": broker.Decimal{Scale: 2, Value: 1234}, "table": broker.Table{"k": int32(1)}, "list": []any{"a", int64(2), broker.Table{"x": nil}},
	})
	w.Headers["x-death"].([]any)[0].(broker.Table)["time"] = at.Truncate(time.Second) //nolint:errcheck,forcetypeassert // it was made above
	raw, err := json.Marshal(encodeWhole(w, "q"))
	require.NoError(t, err)
	var m wholeMessage
	require.NoError(t, json.Unmarshal(raw, &m))
	back, err := m.decode()
	require.NoError(t, err)
	require.Equal(t, w, back)
	_, err = typed{Tag: "?"}.decode()
	require.Error(t, err)
}

func TestKeysReachByTheKindOfTheirExchange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, pattern, key string
		want               bool
	}{
		{"direct", "#", "a", false},
		{"direct", "a", "a", true},
		{"fanout", "", "a", true},
		{"topic", "#", "a.b", true},
		{"topic", "a.*", "a.b", true},
		{"topic", "a.*", "a.b.c", false},
		{"topic", "a.#", "a", true},
		{"topic", "#.c", "a.b.c", true},
		{"topic", "*", "a.b", false},
		{"topic", "a.#.d", "a.b.c.d", true},
	} {
		require.Equal(t, c.want, reaches(c.kind, c.pattern, c.key), "%s %s %s", c.kind, c.pattern, c.key)
	}
}
