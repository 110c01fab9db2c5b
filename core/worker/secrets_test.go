package worker_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

func keyring(t testing.TB, letter string) secret.Keyring {
	t.Helper()
	keys, err := secret.NewKeyring(strings.Repeat(letter, secret.LeastKey))
	require.NoError(t, err)
	return keys
}

// logBuffer is a log in memory.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// sealing starts a worker with keys for secrets, and returns its log.
func (b *bundle) sealing(t testing.TB, name string, keys secret.Keyring) (*worker.Worker, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	logger, err := telemetry.NewLogger(log, "debug", "json")
	require.NoError(t, err)
	w, err := worker.New(worker.Config{Name: name, Keyring: keys, MaxConcurrent: 4, TempDir: t.TempDir()},
		worker.Deps{Store: b.store, Broker: b.broker(t, name), Logger: logger})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
	return w, log
}

// sealed schedules an execution with secret parameters.
func (b *bundle) sealed(t testing.TB, w *worker.Worker, action testkit.ActionRow, config map[string]any,
	secrets map[string]any,
) int64 {
	t.Helper()
	id := b.schedule(t, w, action, config)
	var rows store.InsertSecretValuesParams
	for path, value := range secrets {
		raw, err := keyring(t, "k").Seal(value)
		require.NoError(t, err)
		store.AddSecret(&rows, secret.OfConfig, id, secret.Sealed{Path: path, Kind: secret.FromSchema, Value: raw})
	}
	require.NoError(t, b.store.InsertSecretValues(testkit.Context(t), rows))
	return id
}

const login = `cat >/dev/null; echo '{"session":"derived-session","user":"u","copy":"hunter2\"quoted","note":"n"}'; echo "with hunter2-deep" >&2`

// upstream 52: a secret is decrypted for the action only, and encrypted again in its result. No row, message or log
// line contains it.
func TestSecretsAreDecryptedForTheActionOnly(t *testing.T) {
	b := setup(t)
	w, log := b.sealing(t, "w1", keyring(t, "k"))
	action := b.script(t, "probe.login",
		`test "$(cat "$0.expected")" = "$(cat)" || { echo "wrong parameters" >&2; exit 3; }; `+login, map[string]any{
			"parameter_delivery": "stdin", "parameter_format": "json", "output_format": "json",
			"out_schema":   `{"session":{"type":"string","secret":true},"user":{"type":"string"}}`,
			"param_schema": `{"password":{"secret":true},"port":{"default":80}}`,
		})
	var entrypoint string
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), "select entrypoint from action where id = $1",
		action.ID).Scan(&entrypoint))
	require.NoError(t, os.WriteFile(entrypoint+".expected",
		[]byte(`{"deep":[{"token":"hunter2-deep"}],"password":"hunter2\"quoted","port":80,"user":"u"}`), 0o600))

	id := b.sealed(t, w, action, map[string]any{
		"password": secret.Marker(), "user": "u",
		"deep": []any{map[string]any{"token": secret.Marker()}},
	},
		map[string]any{"/password": `hunter2"quoted`, "/deep/0/token": "hunter2-deep"})
	b.dispatch(t, w, id)
	status, r := b.await(t, id)
	require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
	const marker = `{"$attune_secret":true,"redacted":true}`
	require.JSONEq(t, `{"session":`+marker+`,"user":"u","copy":`+marker+`,"note":"n"}`, string(r.Data))
	require.Equal(t, "with ***\n", r.StderrLog)
	values, err := store.SecretsOf(t.Context(), b.store.Queries, secret.OfResult, id)
	require.NoError(t, err)
	opened := map[string]any{}
	for _, one := range values {
		opened[one.Path], err = keyring(t, "k").Open(one)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]any{"/data/session": "derived-session", "/data/copy": `hunter2"quoted`}, opened)

	testkit.NowhereInDatabase(t, b.store, "hunter2")
	testkit.NowhereInDatabase(t, b.store, "derived-session")
	said, err := json.Marshal(b.completions(id))
	require.NoError(t, err)
	for _, text := range []string{"hunter2", "derived-session"} {
		require.NotContains(t, string(said), text)
		require.NotContains(t, log.String(), text)
	}
}

const (
	privateKey = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
	odd        = `pä"ss<&>wörd`
)

// planted is a script that repeats its secrets in other forms, in its output and as data.
const planted = `cat >/dev/null
cat >&2 <<'END'
pin 84729163 or "84729163"
{"go":"pä\"ss\u003c\u0026\u003ewörd","python":"p\u00e4\"ss<&>w\u00f6rd","upper":"p\u00E4\"ss<&>w\u00F6rd","nested":"{\"p\":\"p\\u00e4\\\"ss\"}"}
    MIIEvQIBADANBgkq
	hkiG9w0BAQEFAASC
cMOkInNzPCY-d8O2cmQ= cMOkInNzPCY+d8O2cmQ cMOkInNzPCY+d8O2cmQ=
END
echo '{"pin":84729163,"text":"pin 84729163","names":{"84729163":1},"line":"x MIIEvQIBADANBgkq x","free":"kept","count":84729164}'`

// Secrets that an action repeats in other forms are hidden too.
func TestSecretsInOtherFormsAreHidden(t *testing.T) {
	b := setup(t)
	w, log := b.sealing(t, "w1", keyring(t, "k"))
	given := map[string]any{"/pin": 84729163, "/password": odd, "/key": privateKey}
	config := map[string]any{"pin": secret.Marker(), "password": secret.Marker(), "key": secret.Marker()}
	const marker = `{"$attune_secret":true,"redacted":true}`

	action := b.script(t, "probe.forms", planted, map[string]any{"output_format": "json"})
	id := b.sealed(t, w, action, config, given)
	b.dispatch(t, w, id)
	status, r := b.await(t, id)
	require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
	require.JSONEq(t, `{"pin":`+marker+`,"text":`+marker+`,"names":`+marker+`,"line":`+marker+
		`,"free":"kept","count":84729164}`, string(r.Data))
	require.Equal(t,
		"pin *** or \"***\"\n"+`{"go":"***","python":"***","upper":"***","nested":"{\"p\":\"p\\u00e4\\\"ss\"}"}`+
			"\n    ***\n\t***\n*** *** ***\n", r.StderrLog, "a part of a secret is not found")

	// A secret in a member's name hides the whole result, but not the acknowledgement.
	named := b.script(t, "probe.named",
		`cat >/dev/null; echo '{"x-84729163":1,"queue_ack":{"ok":[1],"note":"pin 84729163"}}'`,
		map[string]any{"output_format": "json"})
	whole := b.sealed(t, w, named, config, given)
	b.dispatch(t, w, whole)
	_, r = b.await(t, whole)
	require.JSONEq(t, marker, string(r.Data))
	require.JSONEq(t, `{"ok":[1],"note":`+marker+`}`, string(r.QueueAck))
	values, err := store.SecretsOf(t.Context(), b.store.Queries, secret.OfResult, whole)
	require.NoError(t, err)
	require.Len(t, values, 1)
	require.Equal(t, "/data", values[0].Path)
	opened, err := keyring(t, "k").Open(values[0])
	require.NoError(t, err)
	require.Contains(t, opened, "x-84729163")

	// With more occurrences than are encrypted one by one the whole result is hidden.
	many := b.script(t, "probe.many", `cat >/dev/null; yes 84729163 | head -n 5000`,
		map[string]any{"output_format": "jsonl"})
	lines := b.sealed(t, w, many, config, given)
	b.dispatch(t, w, lines)
	_, r = b.await(t, lines)
	require.JSONEq(t, marker, string(r.Data))

	said, err := json.Marshal(append(append(b.completions(id), b.completions(whole)...), b.completions(lines)...))
	require.NoError(t, err)
	for _, text := range []string{"84729163", "ss<&>w", "u003ew", "MIIEvQIB", "hkiG9w0B", "cMOkInNz"} {
		testkit.NowhereInDatabase(t, b.store, text)
		require.NotContains(t, log.String(), text)
		require.NotContains(t, string(said), text)
	}
}

// A secret that cannot be decrypted fails the execution with the reason, and without its value.
func TestSecretsThatCannotBeDecryptedFailTheExecution(t *testing.T) {
	t.Parallel()
	b := setup(t)
	action := b.script(t, "probe.any", `echo ran`, nil)
	for name, c := range map[string]struct {
		keys  secret.Keyring
		alter string
		want  string
	}{
		"no key": {secret.Keyring{}, "", "open the secret parameter password: security.encryption_key is not set"},
		"another key": {
			keyring(t, "x"), "",
			"open the secret parameter password: it was encrypted with another security.encryption_key, or is damaged",
		},
		"another hash": {
			keyring(t, "k"),
			"update execution_secret_value set encryption_key_hash = repeat('ab', 32) where entity_id = $1",
			"open the secret parameter password: it was encrypted with another security.encryption_key, or is damaged",
		},
		"no value": {
			keyring(t, "k"), "delete from execution_secret_value where entity_id = $1",
			"the secret parameter password has no value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, log := b.sealing(t, "w "+name, c.keys)
			id := b.sealed(t, w, action, map[string]any{"password": secret.Marker()},
				map[string]any{"/password": "hunter2"})
			if c.alter != "" {
				testkit.Exec(t, b.store, c.alter, id)
			}
			b.dispatch(t, w, id)
			status, r := b.await(t, id)
			require.Equal(t, lifecycle.StatusFailed, status)
			require.Equal(t, c.want, r.Error)
			require.Empty(t, r.Stdout, "the action did not run")
			require.NotContains(t, log.String(), "hunter2")
		})
	}
}

// Without a key secret results are not stored.
func TestSecretResultsWithoutAKeyAreNotStored(t *testing.T) {
	b := setup(t)
	w, log := b.sealing(t, "w1", secret.Keyring{})
	action := b.script(t, "probe.give", login, map[string]any{
		"output_format": "json",
		"out_schema":    `{"type":"object","properties":{"session":{"type":"string","secret":true}}}`,
	})
	id := b.schedule(t, w, action, nil)
	b.dispatch(t, w, id)
	status, r := b.await(t, id)
	require.Equal(t, lifecycle.StatusCompleted, status)
	require.Equal(t, "secret results were not kept: security.encryption_key is not set", r.OutputError)
	require.Contains(t, string(r.Data), `"$attune_secret"`)
	require.Contains(t, log.String(), "Secret results not stored")
	testkit.NowhereInDatabase(t, b.store, "derived-session")
	require.Zero(t, testkit.Count(t, b.store, "select count(*) from execution_secret_value"))
}

// Secrets of an end that the row refuses are not stored.
func TestSecretsOfARefusedEndAreNotStored(t *testing.T) {
	b := setup(t)
	w, _ := b.sealing(t, "w1", keyring(t, "k"))
	id := b.schedule(t, w, testkit.Action(t, b.store, "probe.lost"), nil)
	testkit.Exec(t, b.store, "update execution set status = 'abandoned' where id = $1", id)
	own := w.ID()
	rows, err := b.store.SettleEnds(t.Context(), store.SettleEndsParams{
		Worker: &own, Ids: []int64{id}, Attempts: []int32{1}, Statuses: []string{"completed"}, Results: []string{"{}"},
		SecretOf: []int64{id}, SecretPaths: []string{"/data/x"}, SecretKinds: []string{secret.FromSchema},
		SecretRefs:   []string{"/x"},
		SecretValues: []string{`"cipher"`},
	})
	require.NoError(t, err)
	require.Empty(t, rows)
	require.Zero(t, testkit.Count(t, b.store, "select count(*) from execution_secret_value"))
}
