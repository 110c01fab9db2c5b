package filter

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
)

var letters = Schema{
	{Name: "status", Kind: Word, Values: []string{"open", "failed", "timeout"}},
	{Name: "action", Kind: Text},
	{Name: "reason", Kind: Within},
	{Name: "worker", Kind: Text},
	{Name: "try", Kind: Number},
	{Name: "age", Kind: Age},
	{Name: "id", Kind: ID},
	{Name: "group", Kind: Text},
}

// deadLetter is a row of the tests.
type deadLetter struct {
	texts   map[string][]string
	numbers map[string]float64
}

func (l deadLetter) Texts(field string) []string { return l.texts[field] }
func (l deadLetter) Number(field string) (float64, bool) {
	n, ok := l.numbers[field]
	return n, ok
}

var one = deadLetter{
	texts: map[string][]string{
		"": {"core.http_request", "expired in its queue"}, "status": {"failed"}, "action": {"core.http_request"},
		"reason": {"Expired in its queue"},
		"worker": {"7", "worker-node-02"}, "id": {"884301"}, "group": {"tenant=acme", "region=eu"},
	},
	numbers: map[string]float64{"try": 2, "age": 900},
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "  ": true, "status:failed": true, "status:open,failed": true, "STATUS:FAILED": true,
		"!status:failed": false, "status:open": false,
		"action:core.*": true, "action:core": false, "action:*request": true, "action:CORE.HTTP_REQUEST": true,
		"action:etl.*,core.*": true,
		"reason:expired":      true, `reason:"in its queue"`: true, "reason:exp*queue": true, "worker:7": true,
		"worker:worker-node-02": true, "worker:70": false,
		"try>=2": true, "try>2": false, "try:2": true, "try<3": true, "try<=1": false, "!try>=2": false,
		"try:>=2": true,
		"age>10m": true, "age<1d02h": true, "age>1w": false, "age<10m": false, "age>1d": false, "age:<1h": true, "group:tenant=acme": true,
		"group:tenant=*": true, "group:tenant": false,
		"http": true, "!http": false, "HTTP": true, "nothing": false, `"its queue"`: true, "its queue": true,
		"queue its http": true, "ht*uest": true,
		"nothing | http": true, "nothing|http": true, "http nothing | action:core.*": true,
		"http nothing | nothing": false, "!nothing !nope": true,
		"!!http": true, `regex:/^core\.(http|ftp)/`: true, "regex:/^http/": false, "!regex:/^http/": true,
		`regex:/in its/`: true, `regex:/a\/b/`: false,
		"nope,http": true, `""`: true, "id:884301": true, "id:7": false,
		"id:884300..884400": true, "id:1..7": false, "id:1..7,884301": true, "!id:884300..884301": false,
	} {
		q, err := Parse(letters, text)
		require.NoError(t, err, text)
		require.Equal(t, want, q.Matches(one), text)
	}
}

func TestUnknownValuesMatchNoComparison(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"try<100", "try>=0", "age>1s", "worker:7"} {
		q, err := Parse(letters, text)
		require.NoError(t, err, text)
		require.False(t, q.Matches(deadLetter{}), text)
	}
}

// TestMistakesAreShownWhereTheyAre marks the position of the error with brackets.
func TestMistakesAreShownWhereTheyAre(t *testing.T) {
	t.Parallel()
	for marked, why := range map[string]string{
		"status:failed [statsu]:open": "no field", "status:failed,[finished]": "one of open, failed, timeout",
		"http [worker:]":   "no value",
		"status:[,]failed": "missing", "age>[soon]": "no age", "age>[-1h]": "no age", "age[:]10m": "compared",
		"try>[two]": "needs a number", "id:[x]": "needs a number", "id:[9..3]": "needs a number",
		"id:[..3]": "needs a number", "action[>]x": "not compared",
		`a ["open`: "not closed", "regex:[/open": "/ is missing", "regex:/[(]/": "not an expression",
		"[|] a": "between", "a [|]": "between", "[!]": "before",
		"[regex:/a/b]": "space is missing", "[regex://]": "empty", "a | [|] b": "between", "http[:]//x": "",
	} {
		open := strings.IndexByte(marked, '[')
		end := strings.LastIndexByte(marked, ']')
		if end < 0 || end < open {
			end = len(marked)
		}
		text := marked[:open] + marked[open+1:end] + strings.TrimPrefix(marked[end:], "]")
		_, err := Parse(letters, text)
		var mistake *Error
		require.ErrorAs(t, err, &mistake, text)
		if why == "" {
			continue
		}
		require.Equal(t, marked[open+1:end], text[mistake.From:mistake.To], "%s: %v", text, err)
		require.ErrorContains(t, err, why, text)
	}
}

func TestAParameterIsNamed(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"param:t7": "name the parameter: param.NAME", "param.:t7": "name the parameter",
		"param.a..b:t7":   "name the parameter",
		"param.tenant:":   "param.tenant has no value",
		"param.amount>3":  "param.amount is not compared: write param.amount:",
		"status.x:failed": "no field", "nope.x:1": "no field",
	} {
		_, err := Parse(Executions, text)
		require.ErrorContains(t, err, why, text)
	}
	q, err := Parse(Executions, `param.Order.country:de,"f r"  !param.n:7`)
	require.NoError(t, err)
	require.Equal(t, `param.Order.country:de,"f r" !param.n:7`, q.String())
	require.Equal(t, []string{"parent:", "param."}, Complete(Executions, "par", 3, nil).Offers)
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("a ", 60), strings.Repeat("a", 3000), strings.Repeat("a|", 9) + "a",
		"caf\xe9",
	} {
		_, err := Parse(letters, text)
		require.Error(t, err)
	}
}

// anyTerm is a valid term.
func anyTerm(random *rand.Rand) string {
	terms := []string{
		"status:failed", "status:open,timeout", "action:core.*", "worker:7", "try>=2", "try<2", "try:2", "age>10m",
		"age<1h", "http", "nothing", `"its queue"`,
		"ht*t", "regex:/^core/", "group:tenant=acme", "id:884301", "reason:expired", `reason:"a \"b\""`, "a,b",
	}
	return strings.Repeat("!", random.IntN(3)) + terms[random.IntN(len(terms))]
}

func TestLawsOfAndOrNot(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	holds := func(text string) bool {
		q, err := Parse(letters, text)
		require.NoError(t, err, text)
		again, err := Parse(letters, q.String())
		require.NoError(t, err, q.String())
		require.Equal(t, q.String(), again.String(), "it is read as it is written")
		require.Equal(t, q.Matches(one), again.Matches(one), text)
		return q.Matches(one)
	}
	for range 500 {
		a, b, c := anyTerm(random), anyTerm(random), anyTerm(random)
		require.Equal(t, holds(a) && holds(b), holds(a+" "+b), "%s and %s", a, b)
		require.Equal(t, holds(a) || holds(b), holds(a+" | "+b), "%s or %s", a, b)
		require.Equal(t, !holds(a), holds("!"+a), "not %s", a)
		require.Equal(t, holds(a) && holds(b) || holds(c), holds(a+" "+b+"|"+c), "and binds tighter than or: %s %s %s",
			a, b, c)
	}
}

func TestAQuotedTermIsOneText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"plain", "two words", `a "b" \c`, "status:failed", "!x", "a|b", "a,b", "7", "",
		"regex:/x/", `{"tenant":"acme"}`, "*",
	} {
		q, err := Parse(letters, Quote(text))
		require.NoError(t, err, text)
		require.Equal(t, [][]string{{text}}, [][]string{q.Any[0][0].Values}, "%q", Quote(text))
		require.Empty(t, q.Any[0][0].Field)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	known := func(field string) []string {
		if field == "worker" {
			return []string{"worker-1", "worker two", "other"}
		}
		return nil
	}
	for typed, want := range map[string][]string{
		"st": {"status:"}, "a": {"action:", "age>"}, "http !st": {"status:"}, "x|ag": {"age>"}, "reg": {"regex:/"},
		"status:": {"open ", "failed ", "timeout "}, "status:open,f": {"failed "}, "status:F": {"failed "},
		"worker:w": {"worker-1 ", `"worker two" `},
		"nofield:": nil, "age>": nil, "zzz": nil, `worker:"worker t`: {`"worker two" `},
	} {
		c := Complete(letters, typed, len(typed), known)
		require.Equal(t, want, c.Offers, typed)
		for _, offer := range c.Offers {
			text := typed[:c.From] + offer
			if strings.HasSuffix(offer, " ") {
				_, err := Parse(letters, text)
				require.NoError(t, err, "%q becomes %q", typed, text)
			}
		}
	}
	require.Len(t, Complete(letters, "", 0, nil).Offers, len(letters)+1, "all fields where nothing is written")
	c := Complete(letters, "st http", 2, nil)
	require.Equal(t, Completion{Span: Span{0, 2}, Offers: []string{"status:"}}, c, "in the middle")
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"status:failed | !age>10m", `"two words" regex:/a\/b/`, "a,b,,", "!!!|", `worker:"x`,
		"\xff", "try:>=2",
	} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, caret int) {
		q, err := Parse(letters, text)
		c := Complete(letters, text, caret, nil)
		if c.From < 0 || c.To < c.From || c.To > len(text) {
			t.Fatalf("%q completes %v", text, c.Span)
		}
		if mistake, ok := errors.AsType[*Error](err); ok {
			if mistake.From < 0 || mistake.To < mistake.From || mistake.To > len(text) || mistake.Why == "" {
				t.Fatalf("%q fails at %v of %d: %s", text, mistake.Span, len(text), mistake.Why)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q fails with %T", text, err)
		}
		q.Matches(one)
		again, err := Parse(letters, q.String())
		if err != nil || again.String() != q.String() {
			t.Fatalf("%q becomes %q: %v", text, q.String(), err)
		}
	})
}

func FuzzForExecutions(f *testing.F) {
	f.Add("status:failed action:core.* !worker:7 age<1h try>=2 | parent:none regex:/^x/")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(Executions, text)
		if err != nil {
			return
		}
		if _, err := ForExecutions(q); err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%q fails with %T", text, err)
			}
		}
	})
}

func TestTheDatabaseFilter(t *testing.T) {
	t.Parallel()
	failed := []lifecycle.Status{lifecycle.StatusFailed}
	for text, want := range map[string]monitor.ExecutionFilter{
		"":                       {},
		"status:failed":          {Statuses: failed},
		"action:core.*":          {Match: []string{`^core\..*$`}},
		"http !mail":             {Match: []string{"http"}, Unmatch: []string{"mail"}},
		"worker:7":               {Worker: "7"},
		"worker:7,w-2 !worker:9": {Workers: []string{"7", "w-2"}, NotWorkers: []string{"9"}},
		"age>10m age<1h":         {MinAge: 10 * time.Minute, MaxAge: time.Hour},
		"!age>10m":               {MaxAge: 10 * time.Minute},
		"try>=2":                 {MinTries: 2, MaxTries: new(monitor.NoLimit)},
		"try<2":                  {MaxTries: new(int64(1))},
		"parent:884050":          {Parent: 884050},
		"!parent:any":            {Parented: monitor.ParentedNone},
		"884301":                 {IDs: []int64{884301}},
		"reason:expired":         {Reasons: []string{"expired"}},
		"id:7..9":                {MinID: 7, MaxID: 9},
		"id:7..7":                {IDs: []int64{7}},
		"param.tenant:t7,t8":     {Params: []monitor.ParamMatch{{Path: "tenant", Values: []string{"t7", "t8"}}}},
		`!PARAM.order.Country="a b"`: {Params: []monitor.ParamMatch{{
			Path: "order.Country", Values: []string{"a b"},
			Not: true,
		}}},
		"status:failed | id:3":     {Statuses: failed, Or: []monitor.ExecutionFilter{{IDs: []int64{3}}}},
		"status:failed,open_error": {},
	} {
		q, err := Parse(Executions, text)
		if text == "status:failed,open_error" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, text)
		got, err := ForExecutions(q)
		require.NoError(t, err, text)
		if len(got.Or) == 0 {
			got.Or = nil
		}
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"status:failed status:running", "worker:7 worker:8", "worker:w-*",
		"parent:1 parent:2", "parent:x", "!id:7", "param.db_password:x", "!id:7..9", "id:1..3,7..9", "id:1..3 id:5..6",
		`regex:/(?:a{300})/`, "!try:2",
	} {
		q, err := Parse(Executions, text)
		require.NoError(t, err, text)
		_, err = ForExecutions(q)
		var mistake *Error
		require.ErrorAs(t, err, &mistake, text)
		require.Less(t, mistake.From, mistake.To, text)
	}
	q, err := Parse(Executions, "!status:failed")
	require.NoError(t, err)
	got, err := ForExecutions(q)
	require.NoError(t, err)
	require.NotContains(t, got.Statuses, lifecycle.StatusFailed)
	require.Len(t, got.Statuses, len(lifecycle.Statuses)-1)
}

func TestTheDatabaseFilterOfWorkflows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]monitor.WorkflowFilter{
		"":                       {},
		"status:failed,paused":   {Statuses: []string{"failed", "paused"}},
		"shop !test":             {Match: []string{"shop"}, Unmatch: []string{"test"}},
		"action:shop.* task:pay": {Match: []string{`^shop\..*$`}, Tasks: []string{"^pay$"}},
		"!task:pay error:exit":   {NotTasks: []string{"^pay$"}, Errors: []string{"exit"}},
		"age<1h failed>=1":       {MaxAge: time.Hour, MinFailed: 1, MaxFailed: new(monitor.NoLimit)},
		"parent:none":            {Parented: monitor.ParentedNone},
		"884050":                 {IDs: []int64{884050}},
		"id:7 | status:running":  {IDs: []int64{7}, Or: []monitor.WorkflowFilter{{Statuses: []string{"running"}}}},
	} {
		q, err := Parse(Workflows, text)
		require.NoError(t, err, text)
		got, err := ForWorkflows(q)
		require.NoError(t, err, text)
		if len(got.Or) == 0 {
			got.Or = nil
		}
		require.Equal(t, want, got, text)
		require.NoError(t, got.Check(), text)
	}
	q, err := Parse(Workflows, "!status:paused")
	require.NoError(t, err)
	got, err := ForWorkflows(q)
	require.NoError(t, err)
	require.True(t, got.NotPaused)
	require.Len(t, got.Statuses, len(lifecycle.Statuses))
	for _, text := range []string{
		"status:failed status:running", "parent:x", "!failed:2", "!id:7",
		`regex:/(?:a{300})/`,
	} {
		q, err := Parse(Workflows, text)
		require.NoError(t, err, text)
		_, err = ForWorkflows(q)
		var mistake *Error
		require.ErrorAs(t, err, &mistake, text)
		require.Less(t, mistake.From, mistake.To, text)
	}
	_, err = Parse(Workflows, "status:done")
	require.Error(t, err)
}

func TestTheDatabaseFilterOfInquiries(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]monitor.InquiryFilter{
		"":                         {},
		"status:pending,timeout":   {Statuses: []string{"pending", "timeout"}},
		"deploy !test":             {Texts: []string{"deploy"}, NotTexts: []string{"test"}},
		"assigned:ada,eve":         {Assignees: []string{"ada", "eve"}},
		"!assigned:ada":            {NotAssignees: []string{"ada"}},
		"assigned:anybody":         {Assigned: monitor.ParentedNone},
		"!assigned:anybody":        {Assigned: monitor.ParentedAny},
		"assigned:*":               {Assigned: monitor.ParentedAny},
		"action:shop.* task:ask":   {Match: []string{`^shop\..*$`}, Tasks: []string{"^ask$"}},
		"prompt:ship !prompt:test": {Prompts: []string{"ship"}, NotPrompts: []string{"test"}},
		"age>1h left<10m":          {MinAge: time.Hour, MaxLeft: 10 * time.Minute},
		"execution:700":            {Execution: 700},
		"71,72":                    {IDs: []int64{71, 72}},
		"status:timeout | left<5m": {
			Statuses: []string{"timeout"},
			Or:       []monitor.InquiryFilter{{MaxLeft: 5 * time.Minute}},
		},
		"left>2h assigned:anybody": {MinLeft: 2 * time.Hour, Assigned: monitor.ParentedNone},
	} {
		q, err := Parse(Inquiries, text)
		require.NoError(t, err, text)
		got, err := ForInquiries(q)
		require.NoError(t, err, text)
		if len(got.Or) == 0 {
			got.Or = nil
		}
		require.Equal(t, want, got, text)
		require.NoError(t, got.Check(), text)
	}
	for _, text := range []string{
		"status:pending status:timeout", "assigned:a assigned:b", "assigned:a*", "assigned:ada,anybody",
		"assigned:anybody assigned:*", "!left<5m",
		"execution:1,2", "execution:1 execution:2", "!execution:1", "!id:7",
	} {
		q, err := Parse(Inquiries, text)
		require.NoError(t, err, text)
		_, err = ForInquiries(q)
		var mistake *Error
		require.ErrorAs(t, err, &mistake, text)
		require.Less(t, mistake.From, mistake.To, text)
	}
}

func TestExpressionsMeanTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for source, texts := range map[string][]string{
		`^etl\.`: {"etl.load", "xetl.load"}, `load$`: {"etl.load", "load.etl"}, `a|b`: {"a", "c"},
		`[a-c]+x?`: {"abx", "d"}, `[^a-z]`: {"1", "a"}, `\d{2,3}`: {"12", "1"},
		`(?:core|mail)\.\w+`: {"core.echo", "core."}, `a*?b`: {"b", "c"},
	} {
		written, err := expression(source)
		require.NoError(t, err, source)
		require.True(t, utf8.ValidString(written))
		require.NotContains(t, written, "?:?", source)
		original := regexp.MustCompile("(?i)" + source)
		require.True(t, original.MatchString(texts[0]), source)
		require.False(t, slices.ContainsFunc(texts[1:], original.MatchString), source)
	}
}

// Terms are added and removed, and other terms keep their text.
func TestAFilterIsEditedByTerms(t *testing.T) {
	t.Parallel()
	status := func(term *Term) bool { return term.Field == "status" }
	for _, c := range []struct{ text, term, want string }{
		{"", "status:failed", "status:failed"},
		{`action:"a b" status:failed !reason:x`, "status:timeout", `action:"a b" !reason:x status:timeout`},
		{`!status:failed  regex:/a b|c/`, "", `regex:/a b|c/`},
		{"status:failed | worker:7", "", "worker:7"},
		{
			"try>2|worker:7 status:failed", "status:timeout,failed",
			"try>2 status:timeout,failed | worker:7 status:timeout,failed",
		},
	} {
		got, err := With(Executions, c.text, c.term, status)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		_, err = Parse(Executions, got)
		require.NoError(t, err)
	}
	_, err := With(Executions, `"open`, "status:failed", status)
	require.Error(t, err)
}
