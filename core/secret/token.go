package secret

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TokenType is the token_type of a token.
type TokenType string

// The published types. Only the service that issues access tokens accepts a refresh token; every
// other service refuses it.
const (
	AccessToken    TokenType = "access"
	RefreshToken   TokenType = "refresh"
	SensorToken    TokenType = "sensor"
	ExecutionToken TokenType = "execution"
	WorkerToken    TokenType = "worker"
)

const (
	// TokenTimeout is the process timeout of an execution without one.
	TokenTimeout = 300 * time.Second
	// TokenGrace is the validity of an execution token after the process timeout.
	TokenGrace = 60 * time.Second
	// TokenLeeway is the time for which an expired token is still valid, because the clocks of services differ.
	TokenLeeway = 60 * time.Second

	// systemIdentity is the subject of executions without an identity.
	systemIdentity = 1
)

// Reasons why a token is not issued or not accepted.
var (
	// ErrNoSecret reports that security.jwt_secret is not set.
	ErrNoSecret = errors.New("security.jwt_secret is not set")
	// ErrExpired reports that the token is no longer valid.
	ErrExpired = errors.New("the token has expired")
	// ErrInvalid reports that the text is not a token of this installation: it is damaged, signed
	// with another secret or algorithm, or lacks a claim.
	ErrInvalid = errors.New("the token is not valid")
)

// ExecutionClaims describes the execution that a token is issued for.
type ExecutionClaims struct {
	ExecutionID int64
	ActionRef   string
	// Identity is execution.executor, nil for the system identity (1).
	Identity *int64
	// PermissionSetRefs is execution.permission_set_refs: everything that the token permits.
	PermissionSetRefs []string
	// WorkflowActionRef is the action of the parent if the execution is a task of a workflow, else empty.
	WorkflowActionRef string
	// Timeout is the process timeout; TokenTimeout if zero.
	Timeout time.Duration
}

// TokenMetadata is the metadata of an execution token.
type TokenMetadata struct {
	ExecutionID              int64    `json:"execution_id"`
	ActionRef                string   `json:"action_ref"`
	PermissionSetRefs        []string `json:"permission_set_refs"`
	StandardAccessActionRefs []string `json:"standard_access_action_refs"`
	StandardAccessPackRefs   []string `json:"standard_access_pack_refs"`
}

// Claims are the claims of a verified token.
type Claims struct {
	Subject string
	Login   string
	Type    TokenType
	Scope   string // empty for none
	Issued  time.Time
	Expires time.Time
	// Execution is set for the type ExecutionToken, and only for it.
	Execution *TokenMetadata
}

// wire is the JSON form of the claims. Published tokens have only sub, iat and exp of the registered ones.
type wire struct {
	jwt.RegisteredClaims

	Login    string          `json:"login"`
	Type     TokenType       `json:"token_type"`
	Scope    string          `json:"scope,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Signer issues and verifies tokens with one secret. It is safe for concurrent use. A nil Signer
// has no secret.
type Signer struct {
	secret []byte
	now    func() time.Time
}

// NewSigner returns a Signer for security.jwt_secret. With an empty secret it issues and accepts nothing.
func NewSigner(secret []byte) *Signer { return &Signer{secret: slices.Clone(secret), now: time.Now} }

// Ready reports whether there is a secret.
func (s *Signer) Ready() bool { return s != nil && len(s.secret) > 0 }

// String keeps secrets out of logs.
func (s *Signer) String() string {
	if s.Ready() {
		return "signer(secret)"
	}
	return "signer()"
}

// GoString keeps secrets out of logs.
func (s *Signer) GoString() string { return s.String() }

// Sign issues the token of an execution. It expires TokenGrace after the process timeout.
// Without a secret it fails with ErrNoSecret.
func (s *Signer) Sign(claims ExecutionClaims) (string, error) {
	id := claims.ExecutionID
	if !s.Ready() {
		return "", fmt.Errorf("issue the token of execution %d: %w", id, ErrNoSecret)
	}
	metadata, err := json.Marshal(metadataOf(claims))
	if err != nil {
		return "", fmt.Errorf("issue the token of execution %d: %w", id, err)
	}
	identity := int64(systemIdentity)
	if claims.Identity != nil {
		identity = *claims.Identity
	}
	now := s.now()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, &wire{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: strconv.FormatInt(identity, 10), IssuedAt: jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(cmp.Or(claims.Timeout, TokenTimeout) + TokenGrace)),
		},
		Login: "execution:" + strconv.FormatInt(id, 10), Type: ExecutionToken,
		Scope: string(ExecutionToken), Metadata: metadata,
	}).SignedString(s.secret)
	if err != nil {
		return "", fmt.Errorf("issue the token of execution %d: %w", id, err)
	}
	return text, nil
}

// metadataOf returns lists that are never null. Refs of actions are sorted and unique; each has one ref of a pack,
// in the same order.
func metadataOf(claims ExecutionClaims) TokenMetadata {
	actions := []string{claims.ActionRef}
	if claims.WorkflowActionRef != "" {
		actions = append(actions, claims.WorkflowActionRef)
	}
	slices.Sort(actions)
	actions = slices.Compact(actions)
	packs := []string{}
	for _, ref := range actions {
		if pack, _, dotted := strings.Cut(ref, "."); dotted {
			packs = append(packs, pack)
		}
	}
	return TokenMetadata{
		ExecutionID:              claims.ExecutionID,
		ActionRef:                claims.ActionRef,
		PermissionSetRefs:        append([]string{}, claims.PermissionSetRefs...),
		StandardAccessActionRefs: actions,
		StandardAccessPackRefs:   packs,
	}
}

// Verify reads a token of any published type. It fails with ErrNoSecret, ErrExpired
// or ErrInvalid. A token without a type is an access token.
func (s *Signer) Verify(text string) (Claims, error) {
	if !s.Ready() {
		return Claims{}, ErrNoSecret
	}
	var read wire
	_, err := jwt.ParseWithClaims(text, &read,
		func(*jwt.Token) (any, error) { return s.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithLeeway(TokenLeeway), jwt.WithTimeFunc(s.now))
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Claims{}, ErrExpired
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Claims{}, fmt.Errorf("%w: it is signed with another secret or algorithm", ErrInvalid)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return Claims{}, fmt.Errorf("%w: the claim exp is missing", ErrInvalid)
	case err != nil: // the cause may repeat parts of the token
		return Claims{}, fmt.Errorf("%w: it cannot be read as a JWT", ErrInvalid)
	}
	return read.claims()
}

func (w *wire) claims() (Claims, error) {
	claims := Claims{
		Subject: w.Subject, Login: w.Login, Type: cmp.Or(w.Type, AccessToken), Scope: w.Scope,
		Expires: w.ExpiresAt.Time,
	}
	if w.Subject == "" || w.IssuedAt == nil {
		return Claims{}, fmt.Errorf("%w: the claim sub or iat is missing", ErrInvalid)
	}
	claims.Issued = w.IssuedAt.Time
	switch claims.Type {
	case AccessToken, RefreshToken, SensorToken, WorkerToken:
		return claims, nil
	case ExecutionToken:
		claims.Execution = &TokenMetadata{}
		err := json.Unmarshal(w.Metadata, claims.Execution)
		if err != nil || claims.Execution.ExecutionID == 0 || claims.Execution.ActionRef == "" {
			return Claims{}, fmt.Errorf("%w: an execution token names its execution and action", ErrInvalid)
		}
		return claims, nil
	}
	return Claims{}, fmt.Errorf("%w: its token_type is unknown", ErrInvalid)
}
