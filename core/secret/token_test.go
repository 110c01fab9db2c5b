package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

const (
	testSecret = "this_is_a_test_secret_of_40_characters!!"
	testNow    = 1_780_000_000
)

func signer(secret string) *Signer {
	s := NewSigner([]byte(secret))
	s.now = func() time.Time { return time.Unix(testNow, 999_000_000) }
	return s
}

// signed makes a token by hand, independent of the library.
func signed(header, claims, secret string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

const hs256 = `{"typ":"JWT","alg":"HS256"}`

// parts decodes a token without verifying it.
func parts(t *testing.T, text string) (header, claims string) {
	t.Helper()
	fields := strings.Split(text, ".")
	require.Len(t, fields, 3)
	for i, into := range []*string{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(fields[i])
		require.NoError(t, err)
		*into = string(raw)
	}
	require.Equal(t, signed(header, claims, testSecret), text, "the signature is HMAC-SHA256 over both parts")
	return header, claims
}

func TestExecutionTokenHasThePublishedClaims(t *testing.T) {
	t.Parallel()
	identity := int64(7)
	for name, c := range map[string]struct {
		claims ExecutionClaims
		want   string
	}{
		"the least": {
			ExecutionClaims{ExecutionID: 42, ActionRef: "core.echo"},
			`{"sub":"1","login":"execution:42","iat":1780000000,"exp":1780000360,
			"token_type":"execution","scope":"execution","metadata":{"execution_id":42,"action_ref":"core.echo",
			"permission_set_refs":[],"standard_access_action_refs":["core.echo"],"standard_access_pack_refs":["core"]}}`,
		},
		"a task of a workflow": {
			ExecutionClaims{
				ExecutionID: 43, ActionRef: "web.deploy", Identity: &identity, WorkflowActionRef: "ops.release",
				PermissionSetRefs: []string{"standard", "core.reader"}, Timeout: 90 * time.Second,
			},
			`{"sub":"7","login":"execution:43","iat":1780000000,"exp":1780000150,
			"token_type":"execution","scope":"execution","metadata":{"execution_id":43,"action_ref":"web.deploy",
			"permission_set_refs":["standard","core.reader"],
			"standard_access_action_refs":["ops.release","web.deploy"],"standard_access_pack_refs":["ops","web"]}}`,
		},
		"a task that is its own workflow's action": {
			ExecutionClaims{ExecutionID: 44, ActionRef: "web.deploy", WorkflowActionRef: "web.deploy"},
			`{"sub":"1","login":"execution:44","iat":1780000000,"exp":1780000360,
			"token_type":"execution","scope":"execution","metadata":{"execution_id":44,"action_ref":"web.deploy",
			"permission_set_refs":[],"standard_access_action_refs":["web.deploy"],"standard_access_pack_refs":["web"]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := signer(testSecret)
			text, err := s.Sign(c.claims)
			require.NoError(t, err)
			header, claims := parts(t, text)
			require.JSONEq(t, hs256, header)
			require.JSONEq(t, c.want, claims)

			read, err := s.Verify(text)
			require.NoError(t, err)
			require.Equal(t, ExecutionToken, read.Type)
			require.Equal(t, "execution", read.Scope)
			require.Equal(t, c.claims.ExecutionID, read.Execution.ExecutionID)
			require.Equal(t, fmt.Sprintf("execution:%d", c.claims.ExecutionID), read.Login)
			require.Equal(t, time.Unix(testNow, 0).UTC(), read.Issued.UTC())
		})
	}
}

func TestOtherPublishedTokensAreAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims string
		want   Claims
	}{
		"access": {
			`{"sub":"5","login":"ann","iat":1779999000,"exp":1780003600,"token_type":"access"}`,
			Claims{Subject: "5", Login: "ann", Type: AccessToken},
		},
		"access without a type": {
			`{"sub":"5","login":"ann","iat":1779999000,"exp":1780003600}`,
			Claims{Subject: "5", Login: "ann", Type: AccessToken},
		},
		"sensor": {
			`{"sub":"9","login":"core.timer","iat":1779999000,"exp":1780003600,"token_type":"sensor","scope":"sensor",` +
				`"metadata":{"trigger_types":["core.timer"],"sensor_ref":"core.timer"}}`,
			Claims{Subject: "9", Login: "core.timer", Type: SensorToken, Scope: "sensor"},
		},
		"worker": {
			`{"sub":"1","login":"worker:w1","iat":1779999000,"exp":1780003600,"token_type":"worker",` +
				`"scope":"internal_files","metadata":{"worker_id":"w1"}}`,
			Claims{Subject: "1", Login: "worker:w1", Type: WorkerToken, Scope: "internal_files"},
		},
		"refresh": {
			`{"sub":"5","login":"ann","iat":1779999000,"exp":1780003600,"token_type":"refresh","scope":null}`,
			Claims{Subject: "5", Login: "ann", Type: RefreshToken},
		},
		"expired within the leeway": {
			`{"sub":"5","login":"ann","iat":1779999000,"exp":1779999950,"token_type":"access"}`,
			Claims{Subject: "5", Login: "ann", Type: AccessToken},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := signer(testSecret).Verify(signed(hs256, c.claims, testSecret))
			require.NoError(t, err)
			require.Equal(t, time.Unix(1779999000, 0).UTC(), read.Issued.UTC())
			require.False(t, read.Expires.IsZero())
			read.Issued, read.Expires = time.Time{}, time.Time{}
			require.Equal(t, c.want, read)
		})
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	const good = `{"sub":"5","login":"ann","iat":1779999000,"exp":1780003600,"token_type":"access"}`
	encode := base64.RawURLEncoding.EncodeToString
	hs512, err := jwt.NewWithClaims(jwt.SigningMethodHS512,
		jwt.MapClaims{"sub": "5", "iat": testNow, "exp": testNow + 60}).
		SignedString([]byte(testSecret))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":          {"", ErrInvalid},
		"not a JWT":        {"abc", ErrInvalid},
		"another secret":   {signed(hs256, good, "another"), ErrInvalid},
		"no signature":     {encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(good)) + ".", ErrInvalid},
		"alg none, signed": {signed(`{"alg":"none"}`, good, testSecret), ErrInvalid},
		"alg None, signed": {signed(`{"alg":"None"}`, good, testSecret), ErrInvalid},
		"HS512":            {hs512, ErrInvalid},
		"RS256 by name":    {signed(`{"alg":"RS256"}`, good, testSecret), ErrInvalid},
		"expired": {
			signed(hs256, `{"sub":"5","login":"ann","iat":1,"exp":1779999939,"token_type":"access"}`, testSecret),
			ErrExpired,
		},
		"no exp":  {signed(hs256, `{"sub":"5","login":"ann","iat":1,"token_type":"access"}`, testSecret), ErrInvalid},
		"no sub":  {signed(hs256, `{"login":"ann","iat":1,"exp":1780003600}`, testSecret), ErrInvalid},
		"no iat":  {signed(hs256, `{"sub":"5","login":"ann","exp":1780003600}`, testSecret), ErrInvalid},
		"no JSON": {signed(hs256, `{`, testSecret), ErrInvalid},
		"unknown type": {
			signed(hs256, `{"sub":"5","login":"ann","iat":1,"exp":1780003600,"token_type":"root"}`, testSecret),
			ErrInvalid,
		},
		"execution without metadata": {
			signed(hs256, `{"sub":"5","login":"execution:4","iat":1,"exp":1780003600,"token_type":"execution"}`,
				testSecret),
			ErrInvalid,
		},
		"another claim changed": {
			strings.Replace(signed(hs256, good, testSecret), "."+encode([]byte(good))+".",
				"."+encode([]byte(strings.Replace(good, `"5"`, `"1"`, 1)))+".", 1),
			ErrInvalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims, err := signer(testSecret).Verify(c.text)
			require.ErrorIs(t, err, c.want)
			require.Zero(t, claims)
			if len(c.text) > 3 {
				require.NotContains(t, err.Error(), c.text)
			}
			require.NotContains(t, err.Error(), testSecret)
		})
	}
}

func TestWithoutASecretNothingIsIssuedOrAccepted(t *testing.T) {
	t.Parallel()
	text, err := signer(testSecret).Sign(ExecutionClaims{ExecutionID: 1, ActionRef: "core.echo"})
	require.NoError(t, err)
	for name, s := range map[string]*Signer{"empty": signer(""), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, s.Ready())
			_, err := s.Sign(ExecutionClaims{ExecutionID: 1, ActionRef: "core.echo"})
			require.ErrorIs(t, err, ErrNoSecret)
			_, err = s.Verify(text)
			require.ErrorIs(t, err, ErrNoSecret)
			_, err = s.Verify(signed(hs256, `{"sub":"5","login":"ann","iat":1,"exp":1780003600}`, ""))
			require.ErrorIs(t, err, ErrNoSecret)
		})
	}
}

func TestASignerNeverShowsItsSecret(t *testing.T) {
	t.Parallel()
	s := NewSigner([]byte(testSecret))
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(format, s), testSecret)
	}
}
