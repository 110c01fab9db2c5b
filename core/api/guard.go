package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// loopback reports whether only this machine reaches the listener. An unknown address counts as
// reachable by others.
func (s *Server) loopback() bool {
	address := s.address
	if s.listener != nil {
		address = s.listener.Addr().String()
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// guarded requires a token with the scope: beyond loopback always, on loopback as soon as a file of
// tokens is configured.
func (s *Server) guarded(scope Scope, next http.Handler) http.Handler {
	if s.loopback() && s.tokens == nil {
		return s.thisMachine(next)
	}
	return s.withToken(scope, true, next)
}

// remote requires a token only beyond loopback. It never refuses a valid token because of its rate, so that metrics are
// read however busy the token is.
func (s *Server) remote(scope Scope, next http.Handler) http.Handler {
	if s.loopback() {
		return s.thisMachine(next)
	}
	return s.withToken(scope, false, next)
}

// withToken requires a token. The requests that are not metered do not count for their token.
func (s *Server) withToken(scope Scope, metered bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret := bearer(r)
		one, ok := s.ownToken(r, secret)
		if err := s.limit(r, one.actor(), metered); err != nil {
			retryAfter(w, http.StatusTooManyRequests, err)
			s.problem(w, r, http.StatusTooManyRequests, err.Error())
			return
		}
		if s.tokens == nil {
			s.refuse(w, r, "no tokens are configured: set executor.http.tokens_file")
			return
		}
		if secret == "" {
			s.refuse(w, r, "a bearer token is needed: send Authorization: Bearer TOKEN")
			return
		}
		if !ok {
			s.refuse(w, r, "the bearer token is not known")
			return
		}
		if !slices.Contains(one.scopes, scope) {
			s.problem(w, r, http.StatusForbidden, "token "+one.name+" does not have the scope "+string(scope))
			return
		}
		next.ServeHTTP(w, withActor(r, one.name))
	})
}

// ownToken returns the token of a secret in our file; the zero value if there is none.
func (s *Server) ownToken(r *http.Request, secret string) (one ownToken, ok bool) {
	if s.tokens == nil || secret == "" {
		return ownToken{}, false
	}
	return s.tokens.find(r.Context(), secret)
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, detail string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="attune"`)
	s.problem(w, r, http.StatusUnauthorized, detail)
}
