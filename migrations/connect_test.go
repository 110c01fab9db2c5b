package migrations_test

import (
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/migrations"
)

// The password goes to another machine as clear text only if the address allows it.
func TestThePasswordIsNotSentAsClearText(t *testing.T) {
	t.Parallel()
	remote := ""
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			remote = ip.IP.String()
		}
	}
	for _, c := range []struct {
		name, host, query, environment string
		requests                       pgproto3.BackendMessage
		sent                           bool
	}{
		{name: "Default", requests: &pgproto3.AuthenticationCleartextPassword{}},
		{name: "Allowed", query: "?sslmode=disable", requests: &pgproto3.AuthenticationCleartextPassword{}, sent: true},
		{
			name: "AllowedByPrefer", query: "?sslmode=prefer", requests: &pgproto3.AuthenticationCleartextPassword{},
			sent: true,
		},
		{
			name: "ThisMachine", host: "127.0.0.1", requests: &pgproto3.AuthenticationCleartextPassword{},
			sent: true,
		},
		{name: "MD5", requests: &pgproto3.AuthenticationMD5Password{Salt: [4]byte{1, 2, 3, 4}}, sent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host := c.host
			if host == "" {
				host = remote
			}
			if host == "" {
				t.Skip("this machine has no other address than loopback")
			}
			listener, err := net.Listen("tcp4", net.JoinHostPort(host, "0")) //nolint:noctx // closed below
			require.NoError(t, err)
			asked := make(chan bool, 8)
			go serveAuthentication(listener, c.requests, asked)
			cfg, err := pgx.ParseConfig("postgres://u:secret-word@" + listener.Addr().String() + "/d" + c.query)
			require.NoError(t, err)
			migrations.KeepPassword(cfg, cfg.ConnString())
			_, err = pgx.ConnectConfig(t.Context(), cfg)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "secret-word")
			require.Equal(t, !c.sent, errors.Is(err, migrations.ErrClearText), "%v", err)
			require.NoError(t, listener.Close())
			require.Equal(t, c.sent, <-asked)
		})
	}
}

// serveAuthentication refuses TLS, and reports whether a client answers the request for its password.
func serveAuthentication(listener net.Listener, request pgproto3.BackendMessage, answered chan<- bool) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		backend := pgproto3.NewBackend(conn, conn)
		first, err := backend.ReceiveStartupMessage()
		if _, tls := first.(*pgproto3.SSLRequest); tls && err == nil {
			_, _ = conn.Write([]byte("N"))
			first, err = backend.ReceiveStartupMessage()
		}
		if _, start := first.(*pgproto3.StartupMessage); !start || err != nil {
			_ = conn.Close()
			continue
		}
		// A client of a newer protocol gets these two first.
		backend.Send(&pgproto3.NoticeResponse{Severity: "NOTICE", Message: "R\x00\x00\x00\x08\x00\x00\x00\x03"})
		backend.Send(request)
		_ = backend.Flush()
		_ = backend.SetAuthType(pgproto3.AuthTypeCleartextPassword)
		_, err = backend.Receive()
		answered <- err == nil
		_ = conn.Close()
	}
}

// The error of an address that the driver cannot parse does not have the address.
func TestAddressErrorsHaveNoAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://u:secret-word@h:x/d", "host=h password=secret-word port=x", "postgres://u:secret`word@h/d?sslmode=odd",
		"host=h password='a secret-word", "password=secret-word host=h sslmode=`odd",
	} {
		_, err := pgx.ParseConfig(address)
		require.Error(t, err, address)
		text := migrations.AddressError(err).Error()
		require.Contains(t, text, "read the address of the database: ")
		for _, part := range []string{"secret", "-word", "h:x", "odd"} {
			require.NotContains(t, text, part, address)
		}
	}
}
