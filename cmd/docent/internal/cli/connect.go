package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/docent-go/docent/framework"
)

// errNoConnect explains how to name an ensemble.
var errNoConnect = errors.New("no ensemble: set --connect, DOCENT_CONNECT or a context of the file " +
	"(docent never tries localhost unasked, because a lock in the wrong ensemble protects nothing)")

// Client returns a client by the settings, and further options. It does not wait for a connection.
// Faults of the settings are usage errors.
func (a *App) Client(further ...framework.Option) (*framework.Client, error) {
	s := a.settings
	if s.Connect == "" {
		return nil, Usage(errNoConnect)
	}
	opts := []framework.Option{framework.WithSessionTimeout(s.SessionTimeout)}
	if s.LeaseMargin != 0 {
		opts = append(opts, framework.WithLeaseMargin(s.LeaseMargin))
	}
	if s.Namespace != "" {
		opts = append(opts, framework.WithNamespace(s.Namespace))
	}
	if s.Compress {
		opts = append(opts, framework.WithCompression())
	}
	secrets, err := a.credentials()
	if err != nil {
		return nil, Usage(err)
	}
	for _, c := range secrets {
		opts = append(opts, framework.WithAuth(c.scheme, c.secret))
	}
	config, err := s.TLSConfig()
	if err != nil {
		return nil, Usage(err)
	}
	if config != nil {
		opts = append(opts, framework.WithTLS(config))
	}
	c, err := framework.NewClient(s.Connect, append(append(opts, further...), a.Options...)...)
	if err != nil {
		return nil, Usage(err)
	}
	return c, nil
}

// Connect returns a client that is connected, for a query. It waits as long as --timeout allows. If
// there is no connection by then, the error names the last failure. The caller closes the client.
func (a *App) Connect(ctx context.Context, further ...framework.Option) (*framework.Client, error) {
	c, err := a.Client(further...)
	if err != nil {
		return nil, err
	}
	if err := a.AwaitConnected(ctx, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// AwaitConnected waits for the connection as long as --timeout allows. If there is none by then, the
// error is [framework.ErrNotConnected], and names the last failure.
func (a *App) AwaitConnected(ctx context.Context, c *framework.Client) error {
	within, cancel := context.WithTimeout(ctx, a.settings.Timeout)
	defer cancel()
	err := c.AwaitConnected(within)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: no connection to %s within --timeout %v: %s",
			framework.ErrNotConnected, a.settings.Connect, a.settings.Timeout, err.Error())
	}
	return err
}

// TLSConfig returns the configuration of TLS, nil if it is off.
func (s Settings) TLSConfig() (*tls.Config, error) {
	if !s.TLS && s.CA == "" && s.Cert == "" && s.ServerName == "" {
		return nil, nil
	}
	config := &tls.Config{ServerName: s.ServerName, MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca %s: has no certificate in PEM form", s.CA)
		}
	}
	if s.Cert != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, fmt.Errorf("--cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
