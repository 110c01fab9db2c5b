package proof

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// An act is one operation on a key: a queue, or a limit that queues share.
//
// Each act happened at one moment, its commit. An observer knows only bounds of that moment. They are true, and as
// narrow as it can observe:
//
//	enqueue   after the start of the batch that wrote the entry; before a
//	          reader first saw the entry
//	admit     after the start of the batch that wrote the slot; before a
//	          reader saw it, and before the worker got the message
//	complete  after the worker finished, since it holds its slot until then;
//	          before a reader saw the slot released
//	cancel    within the statement that changed the row, if it changed it
//	limit, pause, resume
//	          within the call that says so
//
// The database logs the first three in the order of their commits. That order is a claim of its own: it must agree
// with the bounds and the rules, and it keeps the search for an explanation short.
//
// A history is right if each act has a moment within its bounds such that all acts in this order are a correct
// history of a queue with this number of permits.
type act struct {
	Key   string    `json:"key"`
	Kind  string    `json:"kind"`
	ID    int64     `json:"id,omitempty"`
	Lane  int       `json:"lane,omitempty"`
	Place int64     `json:"place,omitempty"` // of an enqueue: its order in the lane
	Limit int       `json:"limit,omitempty"`
	Turn  int       `json:"turn,omitempty"` // its number among the acts of known order, and how many acts share it
	Size  int       `json:"size,omitempty"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

func (a act) String() string {
	switch a.Kind {
	case "enqueue":
		return fmt.Sprintf("enqueue %d in lane %d at %d", a.ID, a.Lane, a.Place)
	case "limit":
		return fmt.Sprintf("limit %d", a.Limit)
	case "pause", "resume":
		return a.Kind
	}
	return fmt.Sprintf("%s %d", a.Kind, a.ID)
}

// keyState is the state of a key: a queue of three lanes before some permits. Its values are copied, never changed.
type keyState struct {
	lanes   [3][]int64
	last    [3]int64 // the highest place given in each lane
	holders []int64  // sorted
	gone    []int64  // cancelled, sorted
	limit   int
	paused  bool
	high    int // admitted in a row, each of the highest waiting lane
	past    int // admitted in a row, each past a lower waiting lane
	turn    int // the number of the last act of known order
	left    int // how many acts share it and are still to come
}

// maxPast is how many may be admitted in a row past a lower waiting lane.
const maxPast = 7

func (l keyState) equal(o keyState) bool {
	for i := range l.lanes {
		if !slices.Equal(l.lanes[i], o.lanes[i]) {
			return false
		}
	}
	return l.last == o.last && l.limit == o.limit && l.paused == o.paused && l.high == o.high && l.past == o.past &&
		l.turn == o.turn && l.left == o.left &&
		slices.Equal(l.holders, o.holders) && slices.Equal(l.gone, o.gone)
}

func (l keyState) hash() uint64 {
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, l.lanes, l.holders, l.limit, l.paused, l.high, l.past, l.turn, l.left, len(l.gone))
	return sum.Sum64()
}

func with(list []int64, id int64) []int64 {
	at, _ := slices.BinarySearch(list, id)
	return slices.Insert(slices.Clone(list), at, id)
}

func without(list []int64, id int64) []int64 {
	return slices.DeleteFunc(slices.Clone(list), func(other int64) bool { return other == id })
}

// step reports whether the act may happen now, and the state after it.
func (l keyState) step(a act) (bool, keyState) {
	if a.Turn > 0 {
		switch {
		case l.left > 0 && a.Turn == l.turn:
			l.left--
		case l.left == 0 && a.Turn == l.turn+1:
			l.turn, l.left = a.Turn, a.Size-1
		default:
			return false, l
		}
	}
	switch a.Kind {
	case "limit":
		l.limit = a.Limit
	case "pause":
		l.paused = true
	case "resume":
		l.paused = false
	case "cancel":
		if slices.Contains(l.holders, a.ID) {
			return false, l // it was cancelled while it waited, so it is never admitted
		}
		l.gone = with(l.gone, a.ID)
		for i := range l.lanes {
			l.lanes[i] = without(l.lanes[i], a.ID)
		}
	case "enqueue":
		if a.Place <= l.last[a.Lane] {
			return false, l // a later one is before it
		}
		l.last[a.Lane] = a.Place
		if !slices.Contains(l.gone, a.ID) {
			l.lanes[a.Lane] = append(slices.Clone(l.lanes[a.Lane]), a.ID)
		}
	case "complete":
		if !slices.Contains(l.holders, a.ID) {
			return false, l
		}
		l.holders = without(l.holders, a.ID)
	case "admit":
		return l.admit(a.ID)
	}
	return true, l
}

func (l keyState) admit(id int64) (bool, keyState) {
	if l.paused || len(l.holders) >= l.limit || slices.Contains(l.gone, id) {
		return false, l
	}
	own, higher, lower, waiting := -1, 0, 0, 0
	for i, lane := range l.lanes {
		waiting += len(lane)
		if slices.Contains(lane, id) {
			own = i
		}
	}
	if own < 0 {
		if waiting > 0 {
			return false, l // a newcomer may not overtake
		}
		l.holders = with(l.holders, id)
		return true, l
	}
	for i, lane := range l.lanes {
		switch {
		case i < own:
			higher += len(lane)
		case i > own:
			lower += len(lane)
		}
	}
	switch {
	case l.lanes[own][0] != id:
		return false, l // not the first of its lane
	case higher > 0 && l.high < maxPast:
		return false, l // not yet the turn of a lower lane
	case higher == 0 && lower > 0 && l.past >= maxPast:
		return false, l // it would have been the turn of a lower lane
	}
	l.high, l.past = min(l.high+1, maxPast), min(l.past+1, maxPast)
	if higher > 0 {
		l.high = 0
	}
	if higher > 0 || lower == 0 {
		l.past = 0
	}
	l.lanes[own] = slices.Clone(l.lanes[own][1:])
	l.holders = with(l.holders, id)
	return true, l
}

// as returns a value of porcupine in its own type.
func as[T any](value any) T {
	typed, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("%T is an unexpected type", value))
	}
	return typed
}

// queueModel is the model of a queue for porcupine.
var queueModel = porcupine.Model{
	Init:              func() any { return keyState{} },
	Step:              func(state, input, _ any) (bool, any) { return as[keyState](state).step(as[act](input)) },
	Equal:             func(a, b any) bool { return as[keyState](a).equal(as[keyState](b)) },
	Hash:              func(state any) uint64 { return as[keyState](state).hash() },
	DescribeOperation: func(input, _ any) string { return as[act](input).String() },
	DescribeState: func(state any) string {
		l := as[keyState](state)
		return fmt.Sprintf("waiting %v, holding %v of %d, paused %v", l.lanes, l.holders, l.limit, l.paused)
	},
}

// assess reports whether the acts on one key can be explained.
func assess(acts []act, timeout time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(queueModel, operations(acts), timeout)
}

func operations(acts []act) []porcupine.Operation {
	list := make([]porcupine.Operation, len(acts))
	for i, a := range acts {
		list[i] = porcupine.Operation{ClientId: i, Input: a, Call: a.From.UnixMicro(), Return: a.Until.UnixMicro()}
	}
	return list
}

// requireExplained checks each key by itself. It writes unexplained acts to files, as text and as a drawing.
func requireExplained(t *testing.T, acts []act) {
	t.Helper()
	keys := map[string][]act{}
	for _, a := range acts {
		require.False(t, a.Until.Before(a.From), "%s of %s ended before it began: %s, %s", a, a.Key, a.From, a.Until)
		keys[a.Key] = append(keys[a.Key], a)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		begun := time.Now()
		result := assess(keys[key], 2*time.Minute)
		t.Logf("%s: %d acts, %s after %s", key, len(keys[key]), result, time.Since(begun).Round(time.Millisecond))
		if result != porcupine.Ok {
			require.Fail(t, "the history of "+key+" cannot be explained: "+string(result), "written to %s",
				keep(t, key, keys[key]))
		}
	}
}

// keep writes a history to a folder that outlives the test.
func keep(t *testing.T, key string, acts []act) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "attune-history-*")
	require.NoError(t, err)
	sort.SliceStable(acts, func(i, j int) bool { return acts[i].From.Before(acts[j].From) })
	raw, err := json.MarshalIndent(acts, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "history.json"), raw, 0o600))
	_, info := porcupine.CheckOperationsVerbose(queueModel, operations(acts), 10*time.Second)
	require.NoError(t, porcupine.VisualizePath(queueModel, info, filepath.Join(dir, "history.html")), key)
	return dir
}

// story makes acts one after the other, each within its own millisecond.
func story(acts ...act) []act {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range acts {
		if acts[i].From.IsZero() {
			acts[i].From = begin.Add(time.Duration(2*i) * time.Millisecond)
			acts[i].Until = acts[i].From.Add(time.Millisecond)
		}
	}
	return acts
}

func limitTo(n int) act   { return act{Kind: "limit", Limit: n} }
func enters(id int64) act { return act{Kind: "enqueue", ID: id, Lane: 1, Place: id} }
func entersLane(id, lane int) act {
	return act{Kind: "enqueue", ID: int64(id), Lane: lane, Place: int64(id)}
}
func admits(id int64) act          { return act{Kind: "admit", ID: id} }
func completes(id int64) act       { return act{Kind: "complete", ID: id} }
func cancels(id int64) act         { return act{Kind: "cancel", ID: id} }
func says(kind string) act         { return act{Kind: kind} }
func (a act) between(x, y int) act { a.From, a.Until = stamp(x), stamp(y); return a }

func stamp(ms int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, ms*1e6, time.UTC)
}

// A checker that refuses nothing proves nothing. Each of these differs from a correct history as its name says.
func TestTheCheckerRefusesWrongHistories(t *testing.T) {
	t.Parallel()
	// Eight high ones and a low one wait; the low one must have its turn after seven.
	lanes := func(turn int) []act {
		acts := []act{limitTo(1), admits(100)}
		for id := 1; id <= 8; id++ {
			acts = append(acts, entersLane(id, 0))
		}
		acts = append(acts, entersLane(9, 2), completes(100))
		for id := range 9 {
			next := int64(id + 1)
			switch {
			case id == turn:
				next = 9
			case id > turn:
				next = int64(id)
			}
			acts = append(acts, admits(next), completes(next))
		}
		return acts
	}
	for name, tc := range map[string]struct {
		acts []act
		want porcupine.CheckResult
	}{
		"in order": {story(limitTo(1), admits(1), enters(2), enters(3), completes(1), admits(2), completes(2),
			admits(3)), porcupine.Ok},
		"S4 an overtaking": {
			story(limitTo(1), admits(1), enters(2), enters(3), completes(1), admits(3), completes(3), admits(2)),
			porcupine.Illegal,
		},
		"S4 a later one stands before": {
			story(limitTo(1), admits(1), act{Kind: "enqueue", ID: 2, Lane: 1, Place: 6},
				act{Kind: "enqueue", ID: 3, Lane: 1, Place: 5}), porcupine.Illegal,
		},
		"S5 a newcomer overtakes": {
			story(limitTo(1), admits(1), enters(2), completes(1), admits(3)),
			porcupine.Illegal,
		},
		"S3 one holder too many": {
			story(limitTo(1), admits(1), enters(2), admits(2), completes(1)),
			porcupine.Illegal,
		},
		"S3 at the limit": {
			story(limitTo(2), admits(1), admits(2), enters(3), completes(1), admits(3)),
			porcupine.Ok,
		},
		"S3 under a lowered limit": {story(limitTo(2), admits(1), admits(2), enters(3), limitTo(1), completes(1),
			admits(3)), porcupine.Illegal},
		"S3 a lowered limit drains": {
			story(limitTo(2), admits(1), admits(2), enters(3), limitTo(1), completes(1), completes(2), admits(3)),
			porcupine.Ok,
		},
		"S7 released twice": {story(limitTo(1), admits(1), completes(1), completes(1)), porcupine.Illegal},
		"S7 released twice and used": {
			story(limitTo(2), admits(1), admits(2), completes(1), completes(1), admits(3)), porcupine.Illegal,
		},
		"S1 admitted twice": {story(limitTo(2), enters(1), admits(1), enters(2), admits(1)), porcupine.Illegal},
		"S21 an admission in a pause": {
			story(limitTo(2), admits(1), enters(2), says("pause"), admits(2), says("resume")), porcupine.Illegal,
		},
		"S21 after the pause": {story(limitTo(2), admits(1), says("pause"), enters(2), says("resume"),
			admits(2)), porcupine.Ok},
		"S15 admitted although cancelled": {story(limitTo(1), admits(1), enters(2), cancels(2), completes(1),
			admits(2)), porcupine.Illegal},
		"a cancel makes way": {story(limitTo(1), admits(1), enters(2), enters(3), cancels(2),
			completes(1), admits(3)), porcupine.Ok},
		"cancelled before it entered": {story(limitTo(1), admits(1), cancels(2), enters(2), enters(3),
			completes(1), admits(3)), porcupine.Ok},
		"S23 a lower lane in its turn": {story(lanes(7)...), porcupine.Ok},
		"S23 a lower lane too early":   {story(lanes(6)...), porcupine.Illegal},
		"S23 a lower lane too late":    {story(lanes(8)...), porcupine.Illegal},
		"bounds that overlap explain it": {[]act{
			limitTo(1).between(0, 1), admits(1).between(2, 3),
			enters(2).between(4, 5), admits(2).between(6, 9), completes(1).between(8, 10),
		}, porcupine.Ok},
		"bounds that do not overlap do not": {[]act{
			limitTo(1).between(0, 1), admits(1).between(2, 3),
			enters(2).between(4, 5), admits(2).between(6, 7), completes(1).between(8, 10),
		}, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, assess(tc.acts, 2*time.Minute))
		})
	}
}
