package page

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// Options are the flags of "serve".
type Options struct {
	Listen      string // host and port
	Cert, Key   string // files
	TokenFile   string
	AllowHosts  []string
	AllowRevoke bool
	Follow      cli.FollowFlags // of zeros, the defaults
}

// check returns what is wrong with the flags. A page that others can reach needs TLS and a token that
// its operator has chosen.
func (o Options) check() error {
	var faults []error
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("--listen %q: must be a host and a port", o.Listen)
	}
	if (o.Cert == "") != (o.Key == "") {
		faults = append(faults, errors.New("--tls-cert and --tls-key: one needs the other"))
	}
	if !isLoopback(host) && (o.Cert == "" || o.TokenFile == "") {
		faults = append(faults, fmt.Errorf("--listen %s: an address that is not loopback needs --tls-cert, --tls-key and --token-file", o.Listen))
	}
	for _, allowed := range o.AllowHosts {
		if allowed == "" || strings.ContainsAny(allowed, "/* ") {
			faults = append(faults, fmt.Errorf("--allow-host %q: must be a name, with the port if it is not the default", allowed))
		}
	}
	return errors.Join(faults...)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// listen listens, with TLS if there is a certificate. It returns the hosts that requests may name.
func (o Options) listen(ctx context.Context) (net.Listener, []string, error) {
	var config *tls.Config
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("--tls-cert: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen: %w", err)
	}
	hosts := append(hostsOf(l.Addr().(*net.TCPAddr), config != nil), o.AllowHosts...)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, hosts, nil
}

// hostsOf returns the hosts by which browsers name an address on which a page listens. They leave out
// the scheme's own port.
func hostsOf(addr *net.TCPAddr, secure bool) []string {
	names := []string{"127.0.0.1", "[::1]", "localhost"}
	if own, _, err := net.SplitHostPort(addr.String()); err == nil && !addr.IP.IsUnspecified() {
		names = append(names, strings.TrimSuffix(net.JoinHostPort(own, ""), ":"))
	}
	var hosts []string
	for _, name := range names {
		hosts = append(hosts, fmt.Sprintf("%s:%d", name, addr.Port))
		if secure && addr.Port == 443 || !secure && addr.Port == 80 {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// base returns the URL of the page, without a path.
func (o Options) base(l net.Listener) string {
	scheme, host := "http", l.Addr().String()
	if o.Cert != "" {
		scheme = "https"
		if len(o.AllowHosts) > 0 {
			host = o.AllowHosts[0]
		}
	}
	return scheme + "://" + host
}

// minToken is the least length of a token that an operator chooses.
const minToken = 16

// token returns the token of the file, else a new one.
func (o Options) token() (string, error) {
	if o.TokenFile == "" {
		return rand.Text(), nil
	}
	text, err := cli.ReadSecret(o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file %w", err)
	}
	token := strings.TrimSpace(text)
	if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("--token-file %s: must have one word of at least %d printable ASCII characters", o.TokenFile, minToken)
	}
	return token, nil
}

// CheckLoopback returns an error if the address is not loopback.
func (o Options) CheckLoopback() error {
	if host, _, err := net.SplitHostPort(o.Listen); err != nil || !isLoopback(host) {
		return fmt.Errorf("--listen %q: must be a loopback address and a port", o.Listen)
	}
	return nil
}
