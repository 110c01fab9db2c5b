package api

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

const (
	pageSize    = 20
	maxPageSize = 100
	largePage   = 50 // of the executions of a status or an enforcement
	// searched bounds the executions that one list reads: the newest ones of its leading filter.
	// It bounds totals too.
	searched = 20_000
	// maxPackActions bounds the actions of a pack that lead a list.
	maxPackActions = 100
)

// executionBody is an execution in the published format.
type executionBody struct {
	ID          int64            `json:"id"`
	Action      *int64           `json:"action"`
	ActionRef   string           `json:"action_ref"`
	Config      json.RawMessage  `json:"config"`
	Parent      *int64           `json:"parent"`
	Enforcement *int64           `json:"enforcement"`
	Executor    *int64           `json:"executor"`
	Worker      *int64           `json:"worker"`
	Status      lifecycle.Status `json:"status"`
	Result      json.RawMessage  `json:"result"`
	Created     time.Time        `json:"created"`
	Updated     time.Time        `json:"updated"`

	PermissionSetRefs       []string                     `json:"permission_set_refs,omitempty"`
	ArtifactRetentionPolicy *store.ArtifactRetentionEnum `json:"artifact_retention_policy,omitempty"`
	ArtifactRetentionLimit  *int32                       `json:"artifact_retention_limit,omitempty"`
	placement.Own
	OriginalExecution *int64          `json:"original_execution,omitempty"`
	StartedAt         *time.Time      `json:"started_at,omitempty"`
	WorkflowTask      json.RawMessage `json:"workflow_task,omitempty"`
}

// summaryBody is an execution in a list.
type summaryBody struct {
	ID          int64            `json:"id"`
	ActionRef   string           `json:"action_ref"`
	Status      lifecycle.Status `json:"status"`
	Parent      *int64           `json:"parent"`
	Enforcement *int64           `json:"enforcement"`
	RuleRef     *string          `json:"rule_ref"`
	TriggerRef  *string          `json:"trigger_ref"`
	Created     time.Time        `json:"created"`
	Updated     time.Time        `json:"updated"`

	StartedAt         *time.Time      `json:"started_at,omitempty"`
	WorkflowTask      json.RawMessage `json:"workflow_task,omitempty"`
	OriginalExecution *int64          `json:"original_execution,omitempty"`
}

// pagination is the position of a page. Totals are optional.
type pagination struct {
	Page        int64  `json:"page"`
	PageSize    int64  `json:"page_size"`
	TotalItems  *int64 `json:"total_items,omitempty"`
	TotalPages  *int64 `json:"total_pages,omitempty"`
	HasPrevious bool   `json:"has_previous"`
	HasNext     bool   `json:"has_next"`
	// Bounded says that the search stopped after so many candidates; the cursor NextCursor continues it.
	Bounded    bool  `json:"bounded,omitempty"`
	NextCursor int64 `json:"next_cursor,omitempty"`
}

// executionFilter is the query of a list.
type executionFilter struct {
	store.PublishedExecutionsParams

	page, perPage int64
	total         bool
}

// getExecution answers one execution.
func (s *Server) getExecution(r *http.Request, _ *caller) (int, any, error) {
	id, err := idOf(r)
	if err != nil {
		return 0, nil, err
	}
	if r.URL.Query().Get("include_secret_values") == "true" {
		return 0, nil, &statusError{http.StatusForbidden, "this service shows no secret values"}
	}
	if err := s.awaitLarge(r.Context(), "execution", id); err != nil {
		return 0, nil, err
	}
	body, err := s.executionOf(r, id)
	return http.StatusOK, map[string]any{"data": body}, err
}

const (
	// largeStored is the stored size from which an answer is large: compressed, 16 MiB may take 200 kB.
	largeStored = 64 << 10
	// largeAtOnce is how many large answers are read and written at a time: each takes several times its size in
	// memory.
	largeAtOnce = 2
)

// awaitLarge waits until few other large answers are being read, until this one is written.
func (s *Server) awaitLarge(ctx context.Context, kind string, id int64) error {
	if s.deps.Published.Store == nil {
		return nil
	}
	size, err := s.deps.Published.Store.StoredSize(ctx, kind, id, monitor.AuditBound)
	if err != nil {
		return fmt.Errorf("read the size of %s %d: %w", kind, id, err)
	}
	if size < largeStored {
		return nil
	}
	select {
	case s.large <- struct{}{}:
		context.AfterFunc(ctx, func() { <-s.large }) // the context ends with the request
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) executionOf(r *http.Request, id int64) (executionBody, error) {
	row, err := s.deps.Published.Store.GetExecution(r.Context(), id)
	if errors.Is(err, sql.ErrNoRows) {
		return executionBody{}, &statusError{http.StatusNotFound, fmt.Sprintf("Execution with ID %d not found", id)}
	}
	if err != nil {
		return executionBody{}, fmt.Errorf("read execution %d: %w", id, err)
	}
	return executionBody{
		ID: row.ID, Action: row.Action, ActionRef: row.ActionRef, Config: row.Config, Parent: row.Parent,
		Enforcement: row.Enforcement, Executor: row.Executor, Worker: row.Worker, Status: row.Status,
		Result:  row.Result,
		Created: row.Created.UTC(), Updated: row.Updated.UTC(), PermissionSetRefs: row.PermissionSetRefs,
		ArtifactRetentionPolicy: row.ArtifactRetentionPolicy, ArtifactRetentionLimit: row.ArtifactRetentionLimit,
		Own: placement.Own{
			Selector: row.WorkerSelector, Tolerations: row.WorkerTolerations, Affinity: row.WorkerAffinity,
		},
		OriginalExecution: row.OriginalExecution, StartedAt: inUTC(row.StartedAt), WorkflowTask: row.WorkflowTask,
	}, nil
}

func inUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	return &utc
}

// listExecutions answers a page of executions, the newest first. As published, it ignores unknown
// query parameters.
func (s *Server) listExecutions(r *http.Request, _ *caller) (int, any, error) {
	return s.list(r, r.URL.Query())
}

// listBy answers a page of the executions that match a filter, whose value is in the path. As
// published, its pages are larger than in other lists, and have totals.
func (s *Server) listBy(filter string,
	value func(r *http.Request) string,
) func(*http.Request, *caller) (int, any, error) {
	return func(r *http.Request, _ *caller) (int, any, error) {
		given := r.URL.Query()
		return s.list(r, url.Values{
			filter: {value(r)}, "include_total": {"true"}, "page": {given.Get("page")},
			"per_page": {cmp.Or(given.Get("page_size"), strconv.Itoa(largePage))}, "cursor": {given.Get("cursor")},
		})
	}
}

func (s *Server) list(r *http.Request, query url.Values) (int, any, error) {
	f, err := readExecutionFilter(query)
	if err != nil {
		return 0, nil, err
	}
	if err := s.lead(r, f); err != nil {
		return 0, nil, err
	}
	rows, err := s.deps.Published.Store.PublishedExecutions(r.Context(), f.PublishedExecutionsParams)
	if err != nil {
		return 0, nil, fmt.Errorf("list executions: %w", err)
	}
	at := pagination{Page: f.page, PageSize: f.perPage, HasPrevious: f.page > 1, HasNext: int64(len(rows)) > f.perPage}
	if !at.HasNext && f.Scan == searched && f.Lead != "enforcement" {
		if err := s.searchedTo(r, f, &at); err != nil {
			return 0, nil, err
		}
	}
	if f.total {
		if err := s.count(r, f, rows, &at); err != nil {
			return 0, nil, err
		}
	}
	items := []summaryBody{}
	for _, row := range rows[:min(int64(len(rows)), f.perPage)] {
		items = append(items, summaryBody{
			ID: row.ID, ActionRef: row.ActionRef, Status: row.Status, Parent: row.Parent, Enforcement: row.Enforcement,
			RuleRef: row.RuleRef, TriggerRef: row.TriggerRef, Created: row.Created.UTC(), Updated: row.Updated.UTC(),
			StartedAt: inUTC(row.StartedAt), WorkflowTask: row.WorkflowTask, OriginalExecution: row.OriginalExecution,
		})
	}
	return http.StatusOK, map[string]any{"items": items, "pagination": at}, nil
}

// executionStats answers the number of executions by group of statuses.
func (s *Server) executionStats(r *http.Request, _ *caller) (int, any, error) {
	rows, err := s.deps.Published.Store.PublishedStats(r.Context())
	if err != nil {
		return 0, nil, fmt.Errorf("count executions by status: %w", err)
	}
	counts := map[string]int64{
		"total": 0, "completed": 0, "failed": 0, "running": 0, "pending": 0, "cancelled": 0, "timeout": 0,
		"abandoned": 0,
	}
	for _, row := range rows {
		group := string(row.Status)
		switch row.Status {
		case lifecycle.StatusRequested, lifecycle.StatusScheduling, lifecycle.StatusScheduled:
			group = "pending"
		case lifecycle.StatusCanceling:
			group = "cancelled"
		}
		counts[group] += row.N
		counts["total"] += row.N
	}
	return http.StatusOK, map[string]any{"data": counts}, nil
}

// count adds the totals. A page beyond the end has no row with the number of matches.
func (s *Server) count(r *http.Request, f *executionFilter, rows []store.PublishedExecutionsRow, at *pagination) error {
	if len(rows) == 0 && f.Skip > 0 {
		first := f.PublishedExecutionsParams
		first.Skip, first.Page = 0, 1
		var err error
		if rows, err = s.deps.Published.Store.PublishedExecutions(r.Context(), first); err != nil {
			return fmt.Errorf("count executions: %w", err)
		}
	}
	items := int64(0)
	if len(rows) > 0 {
		items = rows[0].Matched
	}
	pages := (items + f.perPage - 1) / f.perPage
	at.TotalItems, at.TotalPages = &items, &pages
	return nil
}

// searchedTo says where the search stopped, if it looked at as many candidates as it may: at the last of them.
func (s *Server) searchedTo(r *http.Request, f *executionFilter, at *pagination) error {
	last := store.PublishedExecutionsParams{
		Lead: f.Lead, Ended: f.Ended, Actions: f.Actions, Before: f.Before, Scan: searched, Skip: searched - 1, Page: 1,
	}
	if f.Lead == "parent" {
		last.Parent = f.Parent
	}
	rows, err := s.deps.Published.Store.PublishedExecutions(r.Context(), last)
	if err != nil {
		return fmt.Errorf("find where the search of executions stopped: %w", err)
	}
	if len(rows) > 0 {
		at.Bounded, at.NextCursor = true, rows[0].ID
	}
	return nil
}

func readExecutionFilter(query url.Values) (*executionFilter, error) {
	f := &executionFilter{}
	f.Status, f.Ended, f.Actions = query.Get("status"), []string{}, []int64{}
	if f.Status != "" {
		status, err := lifecycle.ParseStatus(f.Status)
		if err != nil {
			return nil, requestError("Invalid execution status: " + f.Status)
		}
		f.Status = string(status)
	}
	f.Action, f.Rule, f.Trigger = likeRef(query.Get("action_ref")), likeRef(query.Get("rule_ref")),
		likeRef(query.Get("trigger_ref"))
	if pack := query.Get("pack_name"); pack != "" {
		f.Pack = likeRef(pack + ".*")
	}
	if text := query.Get("result_contains"); text != "" {
		f.Result = "%" + literal.Replace(text) + "%"
	}
	f.page, f.perPage, f.Before = 1, pageSize, math.MaxInt64
	for name, into := range map[string]*int64{
		"executor": &f.Executor, "enforcement": &f.Enforcement, "parent": &f.Parent, "page": &f.page,
		"per_page": &f.perPage, "cursor": &f.Before,
	} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number < 1 {
			return nil, requestError(name + " must be a positive number")
		}
		*into = number
	}
	for name, into := range map[string]*bool{"top_level_only": &f.TopLevel, "include_total": &f.total} {
		text := query.Get(name)
		if text != "" && text != "true" && text != "false" {
			return nil, requestError(name + " must be true or false")
		}
		*into = text == "true"
	}
	f.perPage = min(f.perPage, maxPageSize)
	if f.page > searched/f.perPage {
		return nil, requestError(fmt.Sprintf("a list ends after %d executions: narrow the filter", searched))
	}
	f.Skip, f.Page = (f.page-1)*f.perPage, f.perPage+1
	return f, nil
}

// literal escapes a text for LIKE.
var literal = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// likeRef is the pattern of a ref, or of a whole pack if the ref ends in a star.
func likeRef(ref string) string {
	if pack, ok := strings.CutSuffix(ref, ".*"); ok {
		return literal.Replace(pack) + ".%"
	}
	return literal.Replace(ref)
}

// lead chooses the index that finds candidates, the most selective one first: most executions of
// an action have completed. With other filters or a total the candidates are bounded by searched,
// otherwise by the page.
func (s *Server) lead(r *http.Request, f *executionFilter) error {
	rest := *f // the filters beside the leading one
	status := lifecycle.Status(f.Status)
	switch {
	case f.Parent != 0:
		f.Lead, rest.Parent = "parent", 0
	case f.Enforcement != 0:
		f.Lead = "enforcement"
	case status.Terminal() && status != lifecycle.StatusCompleted:
		f.Lead, f.Ended, rest.Status = "ended", []string{f.Status}, ""
	case f.Status != "" && !status.Terminal():
		f.Lead = "unended"
	default:
		if err := s.leadByAction(r, f, &rest); err != nil {
			return err
		}
	}
	f.Scan = f.Skip + f.Page
	if rest.filters() || f.total {
		f.Scan = searched
	}
	return nil
}

// leadByAction leads by the actions of a ref or a pack, unless there are none or too many.
func (s *Server) leadByAction(r *http.Request, f, rest *executionFilter) error {
	if actions := cmp.Or(f.Action, f.Pack); actions != "" {
		ids, err := s.deps.Published.Store.ActionIDsLike(r.Context(), actions, maxPackActions+1)
		if err != nil {
			return fmt.Errorf("look up the actions of a filter: %w", err)
		}
		if len(ids) > 0 && len(ids) <= maxPackActions {
			f.Lead, f.Actions, rest.Action = "action", ids, ""
			if f.Action == "" {
				rest.Pack = ""
			}
			return nil
		}
	}
	f.Lead = "all"
	if f.Status != "" {
		f.Lead, f.Ended, rest.Status = "ended", []string{f.Status}, ""
	}
	return nil
}

// filters reports whether candidates must be checked.
func (f *executionFilter) filters() bool {
	return f.Status != "" || f.Action != "" || f.Pack != "" || f.Rule != "" || f.Trigger != "" || f.Result != "" ||
		f.Executor != 0 || f.Enforcement != 0 || f.Parent != 0 || f.TopLevel
}
