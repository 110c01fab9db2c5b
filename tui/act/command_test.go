package act

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOrderIsWrittenAsCommands(t *testing.T) {
	t.Parallel()
	queue := Target{ID: 3, Name: "queue etl.load", Ref: "etl.load", Action: "etl.load", Group: `{"tenant":"acme"}`}
	worker := Target{ID: 7, Name: "worker w-1", Ref: "w-1"}
	two := []Target{{ID: 42}, {ID: 43}}
	for name, c := range map[string]struct {
		order  Order
		reason string
		want   [][]string
	}{
		"cancel": {Order{Kind: CancelExecution, Target: two[0]}, "wrong host",
			[][]string{{"execution", "cancel", "42", "--reason", "wrong host"}}},
		"tree": {Order{Kind: CancelTree, Target: two[0]}, "",
			[][]string{{"execution", "cancel", "42", "--tree"}}},
		"many": {Order{Kind: RetryExecution, Targets: two}, "",
			[][]string{{"execution", "retry", "42", "43"}}},
		"pause": {Order{Kind: PauseQueue, Target: queue}, "why",
			[][]string{{"queue", "pause", "etl.load", "--group", `{"tenant":"acme"}`, "--reason", "why"}}},
		"limit": {Order{Kind: LimitQueue, Target: queue, Values: map[string]string{FieldLimit: " 2 "}}, "why",
			[][]string{{"queue", "limit", "etl.load", "2", "--group", `{"tenant":"acme"}`}}},
		"reset": {Order{Kind: ResetQueue, Target: Target{Action: "a"}}, "",
			[][]string{{"queue", "limit", "a", "--reset"}}},
		"repair": {Order{Kind: RepairQueue, Target: queue}, "", [][]string{{"queue", "repair", "etl.load"}}},
		"clear": {Order{Kind: ClearQueue, Target: Target{Action: "a"},
			Values: map[string]string{FieldOlderThan: "10m"}}, "",
			[][]string{{"queue", "clear", "a", "--older-than", "10m"}}},
		"workers": {Order{Kind: DrainWorker, Targets: []Target{worker, {ID: 8}}}, "",
			[][]string{{"workers", "drain", "w-1"}, {"workers", "drain", "8"}}},
		"letters": {Order{Kind: DiscardLetter, Targets: two}, "", [][]string{{"dlq", "discard", "42", "43"}}},
		"discard these": {Order{Kind: DiscardLetter, Targets: two}, "old",
			[][]string{{"dlq", "discard", "42", "43", "--reason", "old"}}},
		"discard all": {
			Order{Kind: DiscardAllLetters, Target: two[0],
				Values: map[string]string{FieldReason: "expired", FieldAction: "core.*", FieldWorker: "7"}},
			"old",
			[][]string{{"dlq", "discard-all", "--reason", "expired", "--action", "core.*", "--worker", "7", "--note",
				"old"}},
		},
		"flows": {Order{Kind: PauseWorkflow, Targets: two}, "",
			[][]string{{"workflow", "pause", "42"}, {"workflow", "pause", "43"}}},
		"answer": {Order{Kind: AnswerInquiry, Target: two[0], Values: map[string]string{FieldAs: "ada",
			FieldAnswer + "pin": "1234"}}, "", [][]string{{"inquiry", "respond", "42", "--as", "ada"}}},
		"take": {Order{Kind: TakeLetters,
			Values: map[string]string{FieldQueue: "worker.7.executions", FieldFirst: "10"}}, "old",
			[][]string{{"dlq", "take", "--queue", "worker.7.executions", "--first", "10", "--note", "old"}}},
		"send": {Order{Kind: SendLetters, Target: two[0]}, "", nil},
	} {
		require.Equal(t, c.want, c.order.Commands(c.reason), name)
	}
}

func TestALineForAShellKeepsEachArgument(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	argv := []string{"plain", "two words", "it's", "$(rm -rf /)", "a\x1b[2J\nb", `back\slash`, "", "`x`", "世界",
		`'\` + "\x01"}
	line := Shell(argv...)
	require.NotContains(t, line, "\x1b")
	require.NotContains(t, line, "\n")
	out, err := exec.CommandContext(t.Context(), bash, "-c", `printf '%s\0' `+line).Output()
	require.NoError(t, err)
	require.Equal(t, strings.Join(argv, "\x00")+"\x00", string(out))
}
