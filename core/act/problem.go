package act

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

// ProblemKind is the kind of a problem. A door has an exit code, or a status, for each.
type ProblemKind int

// The kinds of problems.
const (
	Unchanged   ProblemKind = iota // the row is so already; running the act does no harm
	Refused                        // by the present state of the row
	Missing                        // there is no such row
	Conflict                       // another operator acts on it, or it changed meanwhile
	Forbidden                      // to this identity
	Invalid                        // the request itself
	Unfit                          // an answer that its question does not take
	Unreachable                    // the broker, which the act needs
	Denied                         // to the login of the program
	Away                           // the database does not answer
	Unknown                        // whether it was done
	Incomplete                     // less was done than asked for
	Stopped                        // the run ended before its last row
)

// Problem is why an act was not done.
type Problem struct {
	Kind ProblemKind
	// Text says so in a sentence, Instead what to do about it; may be empty.
	Text, Instead string
	// Anyway is true if the operator may insist.
	Anyway bool
	Err    error
}

// Error is the text, with what to do instead.
func (p *Problem) Error() string {
	if p.Instead == "" {
		return p.Text
	}
	return p.Text + ": " + p.Instead
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Is makes a problem that can be insisted upon the one of triage.
func (p *Problem) Is(target error) bool { return p.Anyway && target == triage.ErrUseless }

// refuse is a problem without an error of triage.
func refuse(kind ProblemKind, format string, args ...any) *Problem {
	return &Problem{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// nothing is the problem of a plan that would change nothing.
func nothing(text string) *Problem { return &Problem{Kind: Unchanged, Text: text} }

// hints say where rows of a kind are found, if its list does not show them all.
var hints = map[string]string{
	"execution":   "`attune-executor execution list` shows the newest",
	"workflow":    "`attune-executor workflow list` shows the newest",
	"dead letter": "`attune-executor dlq list` shows the newest",
	"inquiry":     "`attune-executor inquiry list --all` lists all inquiries",
	"queue":       "`attune-executor queue list` shows the queues",
}

// missing is the problem of a row that does not exist.
func missing(request *Request) *Problem {
	hint := "`attune-executor " + acts[request.Kind].Command.Group + " list` shows them"
	return &Problem{
		Kind: Missing, Text: "there is no " + request.subject(), Instead: cmp.Or(hints[request.Kind.Of()], hint),
	}
}

// subject names the row of a request.
func (r *Request) subject() string {
	if r.Target.ID == 0 {
		return r.Kind.Of() + " " + r.Target.Ref
	}
	return fmt.Sprintf("%s %d", r.Kind.Of(), r.Target.ID)
}

// problem explains an error of a plan, or of an act that ran. It returns errors as they are of which it does not know
// more.
func (o *Operator) problem(request *Request, err error, ran bool) error {
	_, known := errors.AsType[*Problem](err)
	if _, invalid := errors.AsType[*InvalidError](err); err == nil || known || invalid {
		return err
	}
	p := o.stateProblem(request, err)
	if p == nil {
		p = o.serverProblem(err, ran)
	}
	if p == nil {
		return err
	}
	p.Err = cmp.Or(p.Err, err)
	return p
}

// stateProblem explains a refusal by the state of a row.
func (o *Operator) stateProblem(request *Request, err error) *Problem {
	id, deadLetter, subject := request.Target.ID, request.Kind.Of() == "dead letter", request.subject()
	target, isTarget := errors.AsType[*triage.TargetError](err)
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	answer, isAnswer := errors.AsType[*triage.AnswerRefusedError](err)
	worker, isWorker := errors.AsType[*triage.WorkerRefusedError](err)
	ended, hasEnded := errors.AsType[*triage.WorkflowEndedError](err)
	unfit, isUnfit := errors.AsType[*monitor.NoWorkflowError](err)
	locked, isLocked := errors.AsType[*triage.LockedError](err)
	switch {
	case isLocked:
		return &Problem{Kind: Conflict, Text: locked.Error()}
	case errors.Is(err, triage.ErrNoMove):
		return &Problem{Kind: Refused, Text: err.Error()}
	case errors.Is(err, triage.ErrGroup), errors.Is(err, triage.ErrLimit):
		return &Problem{Kind: Invalid, Text: err.Error()}
	case isTarget && errors.Is(err, triage.ErrNoQueue):
		return &Problem{Kind: Missing, Text: target.Error(), Instead: hints["queue"]}
	case isTarget:
		return &Problem{Kind: Missing, Text: target.Error()}
	case isAlready:
		text := already.Error()
		if deadLetter {
			text = subject + ": " + text
		}
		return &Problem{Kind: Refused, Text: text, Instead: fmt.Sprintf(
			"`attune-executor execution retry %d` repeats that one once it has ended", already.By)}
	case errors.Is(err, triage.ErrNotEnded) && deadLetter:
		return &Problem{
			Kind: Refused, Text: subject + ": its execution has not ended: " + reason(err, triage.ErrNotEnded),
			Instead: fmt.Sprintf("`attune-executor dlq show %d` says more", id),
		}
	case errors.Is(err, triage.ErrNotEnded):
		return &Problem{
			Kind: Refused, Text: subject + " has not ended: " + reason(err, triage.ErrNotEnded),
			Instead: fmt.Sprintf("wait for its end, or end it with `attune-executor execution cancel %d`", id),
		}
	case errors.Is(err, triage.ErrNoExecution) && deadLetter:
		return &Problem{
			Kind: Refused, Text: subject + ": its execution does not exist any more", Instead: "discard it",
		}
	case errors.Is(err, triage.ErrUseless):
		return &Problem{Kind: Refused, Text: subject + ": " + reason(err, triage.ErrUseless), Anyway: true}
	case errors.Is(err, triage.ErrDecided):
		return &Problem{Kind: Refused, Text: err.Error()}
	case errors.Is(err, triage.ErrNoMessage):
		return &Problem{
			Kind: Refused, Text: err.Error(),
			Instead: "keep a copy with `attune-executor dlq export`, then discard it",
		}
	case isWorker:
		return &Problem{Kind: Refused, Text: worker.Error()}
	case isUnfit && unfit.Within != nil:
		return &Problem{Kind: Missing, Text: unfit.Error(), Instead: fmt.Sprintf(
			"look with `attune-executor workflow show %d`", unfit.Within.Execution)}
	case isUnfit:
		return &Problem{Kind: Missing, Text: unfit.Error(), Instead: fmt.Sprintf(
			"look with `attune-executor execution show %d`", id)}
	case hasEnded:
		return &Problem{Kind: Refused, Text: ended.Error(), Instead: "there is nothing to change"}
	case isAnswer:
		return answerProblem(id, answer)
	case errors.Is(err, triage.ErrNoExecution), errors.Is(err, triage.ErrNoDeadLetter),
		errors.Is(err, triage.ErrNoWorker), errors.Is(err, triage.ErrNoInquiry), errors.Is(err, triage.ErrNoWorkflow),
		errors.Is(err, monitor.ErrNotFound):
		return missing(request)
	}
	return nil
}

// serverProblem explains a refusal by a server.
func (o *Operator) serverProblem(err error, ran bool) *Problem {
	class := store.ClassOf(err)
	denied, isDenied := errors.AsType[*triage.DeniedError](o.triage.Denied(err))
	switch {
	case errors.Is(err, triage.ErrQueueMissing):
		return &Problem{
			Kind: Missing, Text: err.Error(), Instead: "an engine declares attune.dlx.queue when it starts",
		}
	case errors.Is(err, triage.ErrFewMessages):
		return &Problem{Kind: Refused, Text: err.Error()}
	case isDenied:
		return &Problem{Kind: Denied, Text: denied.Error(), Err: denied}
	case errors.Is(err, triage.ErrNoBroker):
		return &Problem{Kind: Unreachable, Text: err.Error()}
	case errors.Is(err, broker.ErrNotConnected):
		return &Problem{Kind: Unreachable, Text: broker.Trouble(err).String(), Instead: "nothing was done"}
	case class == store.ClassUnknown && ran:
		return &Problem{
			Kind: Unknown, Text: err.Error() + ": whether it was done is unknown", Instead: "the same again is safe",
		}
	case class == store.ClassUnreachable && ran:
		return &Problem{Kind: Away, Text: "nothing more was done: " + store.Trouble(err).String()}
	case class == store.ClassUnreachable, class == store.ClassUnknown:
		return &Problem{Kind: Away, Text: store.Trouble(err).String()}
	}
	return nil
}

// reason is the part of an error's text behind that of its kind.
func reason(err, kind error) string {
	_, text, _ := strings.Cut(err.Error(), kind.Error()+": ")
	return text
}
