package api

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
)

// View reads the state of the system; *alerting.Reader implements it.
type View interface {
	act.Reader

	Why(ctx context.Context, id int64) (*explain.Why, error)
	QueueDetail(ctx context.Context, ref explain.QueueRef) (*explain.QueueDetail, error)
	QueueStats(ctx context.Context, ref string) (*monitor.QueueStats, error)
	Scopes(ctx context.Context, action string) (*monitor.Scopes, error)
	Replicas(ctx context.Context) (*monitor.Replicas, error)
	Alerts(ctx context.Context) (*alerting.Alerts, error)
	LedgerList(ctx context.Context, filter monitor.DeadLetterFilter, cursor int64) (*monitor.LedgerPage, error)
	Workflows(ctx context.Context, filter monitor.WorkflowFilter, cursor int64) (*monitor.Workflows, error)
	Inquiries(ctx context.Context, filter monitor.InquiryFilter, cursor string) (*monitor.InquiryPage, error)
	Events(ctx context.Context, filter monitor.EventFilter, cursor int64) (*monitor.EventPage, error)
	EventDetail(ctx context.Context, id int64) (*monitor.EventDetail, error)
	Enforcements(ctx context.Context, filter monitor.EnforcementFilter, cursor int64) (*monitor.EnforcementPage, error)
	Rules(ctx context.Context, trigger, cursor string) (*monitor.RulePage, error)
	Rule(ctx context.Context, ref string) (*monitor.RuleDetail, error)
	LedgerStats(ctx context.Context, window time.Duration) (*monitor.LedgerStats, error)
	Workers(ctx context.Context) (*monitor.Workers, error)
	WholeAudit(ctx context.Context, below int64) (*monitor.Audit, error)
	Policies(ctx context.Context, pack, cursor string) (*monitor.ItemPage[monitor.PolicyItem], error)
	Policy(ctx context.Context, ref string) (*monitor.PolicyDetail, error)
	Actions(ctx context.Context, pack, cursor string) (*monitor.ItemPage[monitor.ActionItem], error)
	Action(ctx context.Context, ref string) (*monitor.ActionDetail, error)
	Triggers(ctx context.Context, pack, cursor string) (*monitor.ItemPage[monitor.TriggerItem], error)
	Trigger(ctx context.Context, ref string) (*monitor.TriggerDetail, error)
	Packs(ctx context.Context, pack, cursor string) (*monitor.ItemPage[monitor.PackItem], error)
	Pack(ctx context.Context, ref string) (*monitor.PackDetail, error)
}

// maxQueues bounds the list of queues of one request.
const maxQueues = 1_000

//go:embed openapi.yaml
var openAPI []byte

// reads adds the reads.
func (s *Server) reads(mux *routes) {
	guarded := func(next http.Handler) http.Handler { return s.guarded(ScopeRead, next) }
	read := func(path string, handle func(r *http.Request) (any, error), parameters ...string) {
		mux.Handle("GET "+path, guarded(s.answer(func(r *http.Request) (any, error) {
			if err := onlyParameters(r, parameters); err != nil {
				return nil, err
			}
			return handle(r)
		})))
		mux.Handle(path, guarded(s.only(readOnly)))
	}
	view := s.deps.View
	read("/api/v1/executions/{id}/why", byID(view.Why))
	read("/api/v1/queues", s.queues, "action", "paused", "blocked", "all", "limit")
	read("/api/v1/queues/{id}", byID(func(ctx context.Context, id int64) (*explain.QueueDetail, error) {
		return view.QueueDetail(ctx, explain.QueueRef{ID: id})
	}))
	mux.Handle("GET /api/v1/actions/{ref}/queue-stats", s.orPublished(s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, nil); err != nil {
			return nil, err
		}
		return view.QueueStats(r.Context(), r.PathValue("ref"))
	})))
	mux.Handle("/api/v1/actions/{ref}/queue-stats", guarded(s.only(readOnly)))
	read("/api/v1/replicas", func(r *http.Request) (any, error) { return view.Replicas(r.Context()) })
	read("/api/v1/alerts", s.alerts, "history")
	read("/api/v1/dead-letters", s.deadLetters, deadLetterParameters...)
	read("/api/v1/dead-letters/{id}", large(s, "dead letter", view.DeadLetter))
	mux.Handle("GET /api/v1/dead-letters/stats", guarded(s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, []string{"since"}); err != nil {
			return nil, err
		}
		return s.deadLetterStats(r)
	})))
	read("/api/v1/workers", s.workers, "health", "name", "limit", "cursor")
	read("/api/v1/audit", s.audit, "cursor")
	read("/api/v1/workflows", s.workflows, "status", "action", "paused", "limit", "cursor")
	read("/api/v1/workflows/{id}", large(s, "execution", s.workflow))
	read("/api/v1/inquiries", s.inquiries, inquiryParameters...)
	read("/api/v1/inquiries/{id}", large(s, "inquiry", view.Inquiry))
	read("/api/v1/events", s.events, "trigger", "limit", "cursor")
	read("/api/v1/events/{id}", large(s, "event", view.EventDetail))
	read("/api/v1/enforcements", s.enforcements, "rule", "status", "event", "limit", "cursor")
	read("/api/v1/rules", func(r *http.Request) (any, error) {
		return view.Rules(r.Context(), r.URL.Query().Get("trigger"), r.URL.Query().Get("cursor"))
	}, "trigger", "cursor")
	read("/api/v1/rules/{ref}", func(r *http.Request) (any, error) {
		return view.Rule(r.Context(), r.PathValue("ref"))
	})
	item(read, "policies", view.Policies, view.Policy)
	item(read, "actions", view.Actions, view.Action)
	item(read, "triggers", view.Triggers, view.Trigger)
	item(read, "packs", view.Packs, view.Pack)
	mux.Handle("/api/v1/openapi.yaml", guarded(s.only(readOnly)))
	mux.Handle("GET /api/v1/openapi.yaml", guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		if _, err := w.Write(openAPI); err != nil {
			s.deps.Logger.DebugContext(r.Context(), "Answer could not be written", "path", r.URL.Path, "error", err)
		}
	})))
}

// item adds the list and the details of one kind of item.
func item[L, D any](
	read func(path string, handle func(r *http.Request) (any, error), parameters ...string), name string,
	list func(ctx context.Context, pack, cursor string) (L, error),
	one func(ctx context.Context, ref string) (D, error),
) {
	read("/api/v1/"+name, func(r *http.Request) (any, error) {
		return list(r.Context(), r.URL.Query().Get("pack"), r.URL.Query().Get("cursor"))
	}, "pack", "cursor")
	read("/api/v1/"+name+"/{ref}", func(r *http.Request) (any, error) {
		return one(r.Context(), r.PathValue("ref"))
	})
}

// audit answers a page of the actions of operators, the newest first.
func (s *Server) audit(r *http.Request) (any, error) {
	q := queryOf(r)
	cursor := q.number("cursor", maxID)
	if q.err != nil {
		return nil, q.err
	}
	if err := s.awaitLarge(r.Context(), "audit", cmp.Or(cursor, math.MaxInt64)); err != nil {
		return nil, err
	}
	return s.deps.View.WholeAudit(r.Context(), cursor)
}

// Values of the header Allow.
const (
	readOnly  = "GET, HEAD"
	writeOnly = "POST"
	readWrite = "GET, HEAD, POST"
)

// only answers every other method on a path with the allowed ones.
func (s *Server) only(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		s.problem(w, r, http.StatusMethodNotAllowed, "there is no "+r.Method+" on this path")
	}
}

// requestError reports an invalid request.
func requestError(text string) error { return &statusError{http.StatusBadRequest, text} }

// answer writes the result of a handler as the member data, or the problem.
func (s *Server) answer(handle func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		data, err := handle(r.WithContext(ctx))
		if err == nil {
			s.write(w, r, http.StatusOK, map[string]any{"data": data})
			return
		}
		code, detail := s.statusOf(r, err)
		retryAfter(w, code, err)
		s.problem(w, r, code, detail)
	})
}

// statusOf returns the status of an error and the text that the client may read. Internal errors go to the log.
func (s *Server) statusOf(r *http.Request, err error) (code int, detail string) {
	for _, known := range statuses {
		if text := known.told(err); text != "" {
			return known.code, text
		}
	}
	if plain, ok := errors.AsType[*statusError](err); ok {
		return plain.code, plain.detail
	}
	if store.IsByValues(err) && store.ClassOf(err) == store.ClassFatal {
		s.deps.Logger.DebugContext(r.Context(), "A request holds a value that the database refuses", "path", r.URL.Path,
			"error", err)
		return http.StatusUnprocessableEntity, "the request holds a text or a number that cannot be stored"
	}
	code, detail, level := http.StatusInternalServerError, "the request failed; the log of the replica says why",
		slog.LevelError
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassUnable, store.ClassCanceled, store.ClassRetryable, store.ClassLocked,
		store.ClassUnknown:
		code, detail, level = http.StatusServiceUnavailable, store.Trouble(err).Fact, slog.LevelWarn
	default:
	}
	if skipped, ok := s.failures.next(time.Now()); ok {
		s.deps.Logger.Log(r.Context(), level, "A request could not be answered", "path", r.URL.Path, "skipped", skipped,
			"error", err)
	}
	return code, detail
}

// statuses are the statuses of errors, with what an answer tells of each.
var statuses = []struct {
	code int
	told func(err error) string
}{
	{http.StatusBadRequest, is(monitor.ErrFilter, "")},
	{http.StatusBadRequest, is(submit.ErrParams, "")},
	{http.StatusNotFound, as[*monitor.UnknownActionError]},
	{http.StatusNotFound, is(monitor.ErrNotFound, "there is nothing of that name")},
	{http.StatusNotFound, as[*submit.UnknownActionError]},
	{http.StatusNotFound, as[*submit.UnknownTriggerError]},
	{http.StatusConflict, as[*submit.RuleMismatchError]},
	{http.StatusRequestEntityTooLarge, is(submit.ErrPayload, "")},
	{http.StatusUnprocessableEntity, as[*submit.InvalidParamsError]},
	{http.StatusUnprocessableEntity, as[*submit.InvalidPayloadError]},
	{http.StatusUnprocessableEntity, is(submit.ErrKeyUsed, "")},
	{http.StatusUnprocessableEntity, as[*jsonvalue.Error]},
	{http.StatusTooManyRequests, as[*tooManyError]},
	{http.StatusInternalServerError, is(submit.ErrSealed, "")},
	{http.StatusServiceUnavailable, is(monitor.ErrUnmigrated, monitor.ErrUnmigrated.Error())},
}

// as tells an error of a type within another one.
func as[E error](err error) string {
	if found, ok := errors.AsType[E](err); ok {
		return found.Error()
	}
	return ""
}

// is tells an error that matches another one, in these words or its own.
func is(target error, words string) func(error) string {
	return func(err error) string {
		if !errors.Is(err, target) {
			return ""
		}
		return cmp.Or(words, err.Error())
	}
}

// problem writes an error in the format of RFC 9457.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, code int, detail string) {
	s.send(w, r, code, "application/problem+json", map[string]any{
		"type": "about:blank", "title": http.StatusText(code), "status": code, "detail": detail, "instance": r.URL.Path,
	})
}

// queueList is the list of queues with the limits that they share.
type queueList struct {
	*monitor.Queues

	Scopes []monitor.Scope `json:"shared_limits"`
}

func (s *Server) queues(r *http.Request) (any, error) {
	q := queryOf(r)
	filter := monitor.QueueFilter{
		Text: q.Get("action"), Paused: q.flag("paused"), Blocked: q.flag("blocked"), All: q.flag("all"),
		Limit: int(q.number("limit", maxQueues)),
	}
	if q.err != nil {
		return nil, q.err
	}
	queues, err := s.deps.View.Queues(r.Context(), filter)
	if err != nil {
		return nil, err
	}
	scopes, err := s.deps.View.Scopes(r.Context(), filter.Text)
	if err != nil {
		return nil, err
	}
	if queues.List == nil {
		queues.List = []monitor.Queue{} // an empty list, not null
	}
	list := queueList{Queues: queues, Scopes: scopes.List}
	if list.Scopes == nil {
		list.Scopes = []monitor.Scope{}
	}
	return list, nil
}

// alerts lists the open alerts, recent ones, and the rules.
func (s *Server) alerts(r *http.Request) (any, error) {
	q := queryOf(r)
	history := q.flag("history")
	if q.err != nil {
		return nil, q.err
	}
	all, err := s.deps.View.Alerts(r.Context())
	if err != nil {
		return nil, err
	}
	if !history {
		all.Recent = []alerting.Alert{}
	}
	return all, nil
}
