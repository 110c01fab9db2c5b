package migrations

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// AddressError is the error of an address that the driver cannot parse, without the address, which may have a password.
func AddressError(err error) error {
	text := err.Error()
	if from, to := strings.Index(text, "`"), strings.LastIndex(text, "`"); from >= 0 && to > from {
		text = strings.TrimPrefix(text[to+1:], ": ")
	}
	text = strings.Replace(text, "unable to add CA to cert pool",
		"no certificate in the file of sslrootcert, which must be in PEM form", 1)
	return fmt.Errorf("read the address of the database: %s", text)
}

// ErrClearText reports a server that wants the password unencrypted, which was not sent.
var ErrClearText = errors.New("the server wants the password as clear text on a connection without TLS, and it was " +
	"not sent: add sslmode=require to the address (or sslmode=disable to allow it), or let pg_hba.conf say scram-sha-256")

// saidTLS matches an address that says what it wants of TLS, or of authentication.
var saidTLS = regexp.MustCompile(`(?i)(^|[?&\s])(sslmode|require_auth)\s*=`)

// KeepPassword makes connections refuse to send the password in clear text to another machine, unless the address or
// the environment says sslmode. The driver's default, prefer, would send it to any server without TLS. The methods
// scram-sha-256 and md5 never send it.
func KeepPassword(cfg *pgx.ConnConfig, address string) {
	said := saidTLS.MatchString(address[strings.LastIndexByte(address, '@')+1:]) || os.Getenv("PGSSLMODE") != "" ||
		os.Getenv("PGREQUIREAUTH") != ""
	if said {
		return
	}
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		if conn, ok := w.(net.Conn); ok && exposed(conn) {
			r = &passwordGuard{from: r}
		}
		return pgproto3.NewFrontend(r, w)
	}
}

// exposed reports whether a connection crosses a network without TLS.
func exposed(conn net.Conn) bool {
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return false
	}
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	return err == nil && !at.Addr().Unmap().IsLoopback()
}

// passwordGuard fails when the server asks for the password in clear text. It follows the messages up to the end of
// the authentication.
type passwordGuard struct {
	from   io.Reader
	header []byte // of the current message: its type and length, and the method of an authentication
	skip   int    // bytes left of the current message
	done   bool
}

// The messages of the protocol that matter here.
const (
	authentication   = 'R'
	authenticationOK = 0
	clearText        = 3
)

// Read implements io.Reader.
func (g *passwordGuard) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	for rest := p[:n]; len(rest) > 0 && !g.done; {
		if skipped := min(g.skip, len(rest)); skipped > 0 {
			g.skip -= skipped
			rest = rest[skipped:]
			continue
		}
		g.header, rest = append(g.header, rest[0]), rest[1:]
		if len(g.header) < 5 || g.header[0] == authentication && len(g.header) < 9 {
			continue
		}
		length := int(binary.BigEndian.Uint32(g.header[1:5])) + 1 - len(g.header)
		if g.header[0] == authentication {
			switch binary.BigEndian.Uint32(g.header[5:9]) {
			case clearText:
				return 0, ErrClearText
			case authenticationOK:
				g.done = true
			}
		}
		g.header, g.skip = g.header[:0], max(length, 0)
	}
	return n, err
}
