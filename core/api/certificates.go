package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
)

// certificates holds the certificate of two files, which are read again when they change.
// Files that have become unreadable, or do not belong together, leave the certificate in
// force that was read last, and the log says so.
type certificates struct {
	cert, key string
	logger    *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu, and so is the stamp of what was tried last
	stamp   string
}

// loadCertificates reads the files. It fails if they cannot be used.
func loadCertificates(cert, key string, logger *slog.Logger) (*certificates, error) {
	if cert == "" || key == "" {
		return nil, fmt.Errorf("TLS needs both executor.http.tls_cert_file and executor.http.tls_key_file")
	}
	c := &certificates{cert: cert, key: key, logger: logger, stamp: stampOfBoth(cert, key)}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate (executor.http.tls_cert_file, executor.http.tls_key_file): %w",
			err)
	}
	c.current = &pair
	return c, nil
}

// stampOfBoth tells one state of the files from another.
func stampOfBoth(cert, key string) string {
	first, err := stampOf(cert)
	if err != nil {
		return err.Error()
	}
	second, err := stampOf(key)
	if err != nil {
		return err.Error()
	}
	return first + " " + second
}

// get is the certificate of a handshake.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := stampOfBoth(c.cert, c.key)
	if stamp == c.stamp {
		return c.current, nil
	}
	c.stamp = stamp
	ctx := hello.Context()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.logger.WarnContext(ctx, "Certificate cannot be read and the old one stays in force", "file", c.cert, "error",
			err)
		return c.current, nil
	}
	c.logger.InfoContext(ctx, "Certificate read again", "file", c.cert)
	c.current = &pair
	return c.current, nil
}

// config is how connections are made.
func (c *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}
