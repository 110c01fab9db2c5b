package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
)

// loadCertificates reads a certificate. The result is the TLS configuration of a server, which follows changes of the
// files.
func loadCertificates(cert, key string, logger *slog.Logger) (*tls.Config, error) {
	if cert == "" || key == "" {
		return nil, fmt.Errorf("TLS needs both executor.http.tls_cert_file and executor.http.tls_key_file")
	}
	current := &reloaded[tls.Certificate]{
		files: []string{cert, key},
		read:  func() (tls.Certificate, error) { return tls.LoadX509KeyPair(cert, key) },
		report: func(ctx context.Context, _ tls.Certificate, err error) {
			if err != nil {
				logger.WarnContext(ctx, "Certificate cannot be read and the old one stays in force", "file", cert,
					"error", err)
				return
			}
			logger.InfoContext(ctx, "Certificate read again", "file", cert)
		},
	}
	if err := current.load(); err != nil {
		return nil, fmt.Errorf("read the certificate (executor.http.tls_cert_file, executor.http.tls_key_file): %w",
			err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair := current.get(hello.Context())
			return &pair, nil
		},
	}, nil
}
