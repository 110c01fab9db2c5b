package secret_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/secret"
)

const testKey = "this_is_a_test_key_that_is_32_chars_long!!!!"

func keyring(t testing.TB, key string) secret.Keyring {
	t.Helper()
	k, err := secret.NewKeyring(key)
	require.NoError(t, err)
	return k
}

// value reads JSON as values; M is a marker.
func value(t testing.TB, raw string) any {
	t.Helper()
	raw = strings.NewReplacer(`:M`, `:{"$attune_secret":true,"redacted":true}`, `[M`,
		`[{"$attune_secret":true,"redacted":true}`).Replace(raw)
	v, err := expr.FromJSON([]byte(raw))
	require.NoError(t, err)
	return v
}

func TestSealedValuesOpen(t *testing.T) {
	t.Parallel()
	k := keyring(t, testKey)
	for _, raw := range []string{
		`"my_secret_password"`, `""`, `null`, `42`, `9007199254740993`, `2.5`, `true`, `["token1",42,true,null]`,
		`{"user":"admin","password":"s3cret","port":5432}`, `"🔐 émojis and <tags> & 日本語"`,
	} {
		sealed, err := k.Seal(value(t, raw))
		require.NoError(t, err)
		require.NotContains(t, string(sealed), "s3cret")
		opened, err := k.Open(secret.Sealed{Value: sealed})
		require.NoError(t, err)
		require.Equal(t, value(t, raw), opened)
		again, err := k.Seal(value(t, raw))
		require.NoError(t, err)
		require.NotEqual(t, sealed, again, "every value has a nonce of its own")
	}
}

// The published form: base64 of a nonce of 12 bytes, the ciphertext and a tag of 16, under the SHA-256 of the key,
// in a JSON string.
func TestTheFormIsThePublishedOne(t *testing.T) {
	t.Parallel()
	sealed, err := keyring(t, testKey).Seal("<a&b>")
	require.NoError(t, err)
	var text string
	require.NoError(t, json.Unmarshal(sealed, &text))
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	require.Len(t, raw, 12+len(`"<a&b>"`)+16)
	// Sealed elsewhere: AES-256-GCM by an independent implementation, with the nonce 000102030405060708090a0b.
	opened, err := keyring(t,
		testKey).Open(secret.Sealed{
		Value:   []byte(`"AAECAwQFBgcICQoLL5SbFJ0CcZbIuUu7K0jc9a+MugNpbTdQ9tXb+Ny6Jto3bSA="`),
		KeyHash: hashOf(testKey),
	})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"token": "hunter2"}, opened)
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func TestOpeningRefusesWithoutSayingAnything(t *testing.T) {
	t.Parallel()
	k := keyring(t, testKey)
	sealed, err := k.Seal("hunter2")
	require.NoError(t, err)
	other := strings.Repeat("x", secret.LeastKey)
	for name, c := range map[string]struct {
		key    secret.Keyring
		sealed secret.Sealed
		want   error
	}{
		"no key":       {secret.Keyring{}, secret.Sealed{Value: sealed}, secret.ErrNoKey},
		"another key":  {keyring(t, other), secret.Sealed{Value: sealed}, secret.ErrOtherKey},
		"another hash": {k, secret.Sealed{Value: sealed, KeyHash: hashOf(other)}, secret.ErrOtherKey},
		"not a string": {k, secret.Sealed{Value: []byte("42")}, secret.ErrOtherKey},
		"not base64":   {k, secret.Sealed{Value: []byte(`"hunter2!"`)}, secret.ErrOtherKey},
		"too short":    {k, secret.Sealed{Value: []byte(`"c2hvcnQ="`)}, secret.ErrOtherKey},
		"nothing":      {k, secret.Sealed{}, secret.ErrOtherKey},
		"a byte is broken": {
			k,
			secret.Sealed{Value: []byte(strings.Replace(string(sealed), string(sealed[20]), "_", 1))},
			secret.ErrOtherKey,
		},
	} {
		_, err := c.key.Open(c.sealed)
		require.ErrorIs(t, err, c.want, name)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err = secret.Keyring{}.Seal("hunter2")
	require.ErrorIs(t, err, secret.ErrNoKey)
	_, err = k.Seal(func() {})
	require.EqualError(t, err, "a secret value cannot be written as JSON")
	_, err = secret.NewKeyring("short")
	require.EqualError(t, err, "security.encryption_key has fewer than 32 characters")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", k, k, k, k), hashOf(testKey)[:8])
	require.False(t, keyring(t, "").Ready())
}

func TestTakeLeavesMarkers(t *testing.T) {
	t.Parallel()
	in := value(t, `{"user":"a","password":"hunter2","deep":{"a/b~c":["x","hunter3"]},"none":null}`)
	before := fmt.Sprint(in)
	public, taken := secret.Take(in, []string{"/password", "/deep/a~1b~0c/1", "/none", "/missing/x", "/user/deeper"})
	require.Equal(t, []secret.Taken{{Path: "/password", Value: "hunter2"}, {Path: "/deep/a~1b~0c/1", Value: "hunter3"}},
		taken)
	require.Equal(t, value(t, `{"user":"a","password":{"$attune_secret":true,"redacted":true},"none":null,
		"deep":{"a/b~c":["x",{"$attune_secret":true,"redacted":true}]}}`), public)
	require.Equal(t, before, fmt.Sprint(in), "what was given is not changed")
	require.Equal(t, []string{"/deep/a~1b~0c/1", "/password"}, secret.Paths(public))
	require.Equal(t, in, secret.Put(public, taken))
	again, none := secret.Take(public, []string{"/password"})
	require.Equal(t, public, again)
	require.Empty(t, none, "a marker is taken once")
}

func TestHideSealsTheValues(t *testing.T) {
	t.Parallel()
	k := keyring(t, testKey)
	public, sealed, err := k.Hide(value(t, `{"a":"hunter2","b":1}`), []string{"/a", "/missing"})
	require.NoError(t, err)
	require.Equal(t, value(t, `{"a":M,"b":1}`), public)
	require.Len(t, sealed, 1)
	require.Equal(t, []string{"/a", secret.FromSchema, "/a", ""},
		[]string{sealed[0].Path, sealed[0].Kind, sealed[0].Ref, sealed[0].KeyHash})
	opened, err := k.Open(sealed[0])
	require.NoError(t, err)
	require.Equal(t, "hunter2", opened)
	_, _, err = secret.Keyring{}.Hide(value(t, `{"a":"hunter2"}`), []string{"/a"})
	require.ErrorIs(t, err, secret.ErrNoKey)
	_, _, err = secret.Keyring{}.Hide(value(t, `{"b":1}`), []string{"/a"})
	require.NoError(t, err, "without secrets no key is needed")
}

// Secrets are followed through templates to every place.
func TestSecretsAreFollowedThroughTemplates(t *testing.T) {
	t.Parallel()
	k := keyring(t, testKey)
	rows := map[secret.Source]secret.Sealed{}
	keep := func(entity string, id int64, path string, plain any) secret.Source {
		sealed, err := k.Seal(plain)
		require.NoError(t, err)
		source := secret.Source{Entity: entity, ID: id, Path: path}
		rows[source] = secret.Sealed{Path: path, Value: sealed}
		return source
	}
	password := keep(secret.OfConfig, 7, "/password", `hun"ter2`)
	token := keep(secret.OfResult, 8, "/data/token", map[string]any{"id": int64(5), "a": "x"})
	public := value(t, `{"user":"u","password":{"$attune_secret":true,"redacted":true}}`)
	result := value(t, `{"token":{"$attune_secret":true,"redacted":true}}`)
	scope := expr.Names{
		"parameters": secret.Trace(public, secret.OfConfig, 7),
		"result":     secret.Trace(map[string]any{"data": result}, secret.OfResult, 8),
	}
	in := map[string]any{
		"whole": "{{ parameters.password }}", "list": []any{"{{ result.data.token }}", "plain"},
		"header": "Bearer {{ parameters.password }}/{{ result.data.token }}!", "all": "{{ parameters }}",
		"text": "p={{ parameters }}",
		"user": "{{ parameters.user }}", "made": `{{ "x" + string(parameters.password) }}`,
	}
	rendered, err := expr.Render(in, scope)
	require.NoError(t, err)
	clean, found, err := secret.Collect(rendered)
	require.NoError(t, err)
	require.Equal(t,
		value(t,
			`{"whole":M,"list":[M,"plain"],"header":M,"all":{"user":"u","password":M},"text":M,"user":"u","made":M}`), clean)
	var paths []string
	opened := map[string]any{}
	for _, one := range found {
		paths = append(paths, one.Path)
		sealed, err := k.Assemble(one, rows)
		require.NoError(t, err)
		require.Equal(t, one.Path, sealed.Path)
		require.NotEmpty(t, sealed.Kind)
		require.Empty(t, sealed.KeyHash)
		opened[one.Path], err = k.Open(sealed)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"/all/password", "/header", "/list/0", "/made", "/text", "/whole"}, paths)
	require.Equal(t, map[string]any{
		"/all/password": `hun"ter2`, "/header": `Bearer hun"ter2/{"a":"x","id":5}!`,
		"/list/0": map[string]any{"id": int64(5), "a": "x"},
		"/made":   `xhun"ter2`, "/text": `p={"password":"hun\"ter2","user":"u"}`, "/whole": `hun"ter2`,
	}, opened)
	require.ElementsMatch(t, []secret.Source{password, token}, secret.Sources(found))

	whole := found[len(found)-1]
	passed, err := secret.Keyring{}.Assemble(whole, rows)
	require.NoError(t, err, "sealed values are passed on without a key")
	require.Equal(t, rows[password].Value, passed.Value)
	require.Equal(t, []string{secret.FromParameter, "7:/password"}, []string{passed.Kind, passed.Ref})
	_, err = secret.Keyring{}.Assemble(found[1], rows)
	require.ErrorIs(t, err, secret.ErrNoKey)
	_, err = k.Assemble(whole, nil)
	require.EqualError(t, err, "whole: the secret of the parameters of execution 7 is gone")
	require.Equal(t, []string{"header", "list.0", "made", "text"}, secret.Misplaced(found, []string{"/whole", "/all"}))
}

// A written marker does not reveal another's secret.
func TestMarkersOfStrangersAreNotBelieved(t *testing.T) {
	t.Parallel()
	foreign := `{"$attune_secret":true,"from":"execution_config:1:/password","redacted":true}`
	given := value(t, `{"a":[`+foreign+`],"text":`+string(must(json.Marshal("x"+foreign)))+`,"$attune_secret":1}`)
	before := fmt.Sprint(given)
	traced := secret.Trace(given, secret.OfConfig, 7)
	require.Equal(t, before, fmt.Sprint(given), "what was given is not changed")
	rendered, err := expr.Render(map[string]any{"x": "{{ p.a[0] }}", "y": "{{ p.text }}!", "z": "{{ p }}!"},
		expr.Names{"p": traced})
	require.NoError(t, err)
	public, found, err := secret.Collect(rendered)
	require.NoError(t, err)
	require.Equal(t, []secret.Source{{Entity: secret.OfConfig, ID: 7, Path: "/a/0"}}, secret.Sources(found))
	text, ok := secret.At(public, "/y")
	require.True(t, ok)
	require.Equal(t, "x"+strings.Replace(foreign, "attune_", "attune-", 1)+"!", text)

	require.NoError(t, secret.Check(found, func(s secret.Source) bool { return s.ID == 7 }))
	_, found, err = secret.Collect(value(t, `{"x":`+foreign+`}`))
	require.NoError(t, err)
	require.EqualError(t, secret.Check(found, func(s secret.Source) bool { return s.ID == 7 }),
		"x: the secret of the parameters of execution 1 does not belong here")
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

func TestValuesWithoutSecretsStayUnchanged(t *testing.T) {
	t.Parallel()
	clean, found, err := secret.Collect(map[string]any{"x": "plain", "n": int64(1)})
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, map[string]any{"x": "plain", "n": int64(1)}, clean)
}

// The result of a function on a marker is not a marker; that is an error and not passed on.
func TestWhatCannotBeFollowedIsRefused(t *testing.T) {
	t.Parallel()
	scope := expr.Names{"p": secret.Trace(value(t, `{"pw":M}`), secret.OfConfig, 1), "bare": secret.Marker()}
	for template, want := range map[string]string{
		`{{ replace(string(p.pw), "true", "x") }}`: "x: a secret was changed by a function",
		`{{ slice(string(p.pw), 1) }}`:             "x: a secret was changed by a function",
		`{{ [string(p.pw)] }}!`:                    "x: a secret was changed by a function",
		`{{ bare }}`:                               "x: the origin of the secret in this place is unknown",
		`{{ bare }}!`:                              "x: the origin of the secret in this place is unknown",
	} {
		rendered, err := expr.Render(map[string]any{"x": template}, scope)
		require.NoError(t, err)
		_, _, err = secret.Collect(rendered)
		require.ErrorContains(t, err, want, template)
	}
	_, _, err := secret.Collect(map[string]any{"x": map[string]any{`{"$attune_secret":true}`: 1}})
	require.EqualError(t, err, "x: a secret cannot be the name of a field")
	_, err = expr.Render("{{ lower(p.pw) }}", scope)
	require.ErrorContains(t, err, "a string is expected, not an object", "functions do not get at secrets")
}

// FuzzCollect tries texts with markers: the public part contains no marker's source, and nothing panics.
func FuzzCollect(f *testing.F) {
	for _, seed := range []string{
		"x", `{"$attune_secret":true,"from":"execution_config:1:/a","redacted":true}`,
		`{"$attune_secret":true`, `{"$attune_secret":1}`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		traced := secret.Trace(map[string]any{"k": secret.Marker()}, secret.OfConfig, 5)
		public, found, err := secret.Collect([]any{
			text, expr.Text(traced), traced,
			text + expr.Text(secret.Trace(secret.Marker(), secret.OfResult, 9)),
		})
		if err != nil {
			return
		}
		raw, err := json.Marshal(public)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "execution_config:5")
		require.GreaterOrEqual(t, len(found), 3)
		_, _ = secret.Take(public, []string{path})
		_, _ = secret.At(public, path)
		_ = secret.Put(public, []secret.Taken{{Path: path, Value: 1}})
	})
}

// Another author's text contains no marker, however it is nested, and is otherwise unchanged.
func TestDefusedIsNoMarker(t *testing.T) {
	t.Parallel()
	in := value(t, `{"a":M,"b":[M,"x{\"$attune_secret\":true}",1],"c":{"d":"fine","n":null}}`)
	before := fmt.Sprint(in)
	out := secret.Defuse(in)
	require.Equal(t, before, fmt.Sprint(in), "what was given is not changed")
	require.NotContains(t, fmt.Sprint(out), expr.Secret)
	public, found, err := secret.Collect(out)
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, value(t, `{"a":{"$attune-secret":true,"redacted":true},"b":[{"$attune-secret":true,"redacted":true},"x{\"$attune-secret\":true}",1],
		"c":{"d":"fine","n":null}}`), public)
	require.Equal(t, value(t, `{"$attune-secret":true,"redacted":true}`), secret.Defuse(secret.Marker()))
}
