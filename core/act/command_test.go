package act

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARequestIsWrittenAsCommands(t *testing.T) {
	t.Parallel()
	queue := Target{ID: 3, Name: "queue etl.load", Ref: "etl.load", Action: "etl.load", Group: `{"tenant":"acme"}`}
	worker := Target{ID: 7, Name: "worker w-1", Ref: "w-1"}
	two := []Target{{ID: 42}, {ID: 43}}
	for name, c := range map[string]struct {
		request Request
		reason  string
		want    [][]string
	}{
		"cancel": {
			Request{Kind: CancelExecution, Target: two[0]},
			"wrong host",
			[][]string{{"execution", "cancel", "42", "--reason", "wrong host"}},
		},
		"tree": {
			Request{Kind: CancelTree, Target: two[0]},
			"",
			[][]string{{"execution", "cancel", "42", "--tree"}},
		},
		"many": {
			Request{Kind: RetryExecution, Targets: two},
			"",
			[][]string{{"execution", "retry", "42", "43"}},
		},
		"pause": {
			Request{Kind: PauseQueue, Target: queue},
			"why",
			[][]string{{"queue", "pause", "etl.load", "--group", `{"tenant":"acme"}`, "--reason", "why"}},
		},
		"limit": {
			Request{Kind: LimitQueue, Target: queue, Values: map[string]string{FieldLimit: " 2 "}},
			"why",
			[][]string{{"queue", "limit", "etl.load", "2", "--group", `{"tenant":"acme"}`}},
		},
		"reset": {
			Request{Kind: ResetQueue, Target: Target{Action: "a"}},
			"",
			[][]string{{"queue", "limit", "a", "--reset"}},
		},
		"repair": {Request{Kind: RepairQueue, Target: queue}, "", [][]string{{"queue", "repair", "etl.load"}}},
		"clear": {
			Request{
				Kind: ClearQueue, Target: Target{Action: "a"},
				Values: map[string]string{FieldOlderThan: "10m"},
			},
			"",
			[][]string{{"queue", "clear", "a", "--older-than", "10m"}},
		},
		"workers": {
			Request{Kind: DrainWorker, Targets: []Target{worker, {ID: 8}}},
			"",
			[][]string{{"workers", "drain", "w-1"}, {"workers", "drain", "8"}},
		},
		"letters": {Request{Kind: DiscardDeadLetter, Targets: two}, "", [][]string{{"dlq", "discard", "42", "43"}}},
		"discard these": {
			Request{Kind: DiscardDeadLetter, Targets: two},
			"old",
			[][]string{{"dlq", "discard", "42", "43", "--reason", "old"}},
		},
		"discard all": {
			Request{
				Kind: DiscardAllDeadLetters, Target: two[0],
				Values: map[string]string{FieldReason: "expired", FieldAction: "core.*", FieldWorker: "7"},
			},
			"old",
			[][]string{{
				"dlq", "discard-all", "--reason", "expired", "--action", "core.*", "--worker", "7", "--note",
				"old",
			}},
		},
		"flows": {
			Request{Kind: PauseWorkflow, Targets: two},
			"",
			[][]string{{"workflow", "pause", "42"}, {"workflow", "pause", "43"}},
		},
		"answer": {Request{Kind: AnswerInquiry, Target: two[0], Values: map[string]string{
			FieldAs:             "ada",
			FieldAnswer + "pin": "1234",
		}}, "", [][]string{{"inquiry", "respond", "42", "--as", "ada"}}},
		"take": {
			Request{
				Kind:   TakeDeadLetters,
				Values: map[string]string{FieldQueue: "worker.7.executions", FieldFirst: "10"},
			},
			"old",
			[][]string{{"dlq", "take", "--queue", "worker.7.executions", "--first", "10", "--note", "old"}},
		},
		"send": {Request{Kind: SendDeadLetters, Target: two[0]}, "", nil},
	} {
		require.Equal(t, c.want, c.request.Commands(c.reason), name)
	}
}

func TestALineForAShellKeepsEachArgument(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	argv := []string{
		"plain", "two words", "it's", "$(rm -rf /)", "a\x1b[2J\nb", `back\slash`, "", "`x`", "世界",
		`'\` + "\x01",
	}
	line := Shell(argv...)
	require.NotContains(t, line, "\x1b")
	require.NotContains(t, line, "\n")
	out, err := exec.CommandContext(t.Context(), bash, "-c", `printf '%s\0' `+line).Output()
	require.NoError(t, err)
	require.Equal(t, strings.Join(argv, "\x00")+"\x00", string(out))
}
