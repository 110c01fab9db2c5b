package broker

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// trust is the TLS configuration that an AMQP URL names with cacertfile, certfile, keyfile and
// server_name_indication. Without cacertfile the authorities of the system count.
func trust(uri amqp.URI) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: cmp.Or(uri.ServerName, uri.Host), MinVersion: tls.VersionTLS12}
	if uri.CACertFile != "" {
		authorities, err := os.ReadFile(uri.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of authorities: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("no certificate in %s (cacertfile): it must be in PEM form, as written by "+
				"`openssl x509 -inform der -in FILE`", uri.CACertFile)
		}
	}
	if uri.CertFile != "" && uri.KeyFile != "" {
		certificate, err := tls.LoadX509KeyPair(uri.CertFile, uri.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{certificate}
	}
	return cfg, nil
}

// secure starts TLS on a connection to the broker.
func secure(conn net.Conn, uri amqp.URI) (net.Conn, error) {
	cfg, err := trust(uri)
	if err != nil {
		return nil, err
	}
	client := tls.Client(conn, cfg)
	//nolint:noctx // the connection has a deadline and is closed with the context
	if err := client.Handshake(); err != nil {
		return nil, err
	}
	return client, nil
}

// OpenManagement makes a client of the management API of a broker, and names its virtual host. TLS trusts the
// authorities that the AMQP URL names.
func OpenManagement(cfg Config, timeout time.Duration) (*Management, string, error) {
	uri, err := parseURL(cfg.URL)
	if err != nil {
		return nil, "", err
	}
	m, err := NewManagement(cfg.ManagementURL, uri.Vhost, timeout)
	if err != nil {
		return nil, "", err
	}
	m.login = cfg.ManagementLogin
	if uri.CACertFile != "" || uri.CertFile != "" {
		if m.transport.TLSClientConfig, err = trust(uri); err != nil {
			return nil, "", err
		}
		if m.host != uri.Host {
			m.transport.TLSClientConfig.ServerName = "" // that of the URL
		}
	}
	return m, uri.Vhost, nil
}
