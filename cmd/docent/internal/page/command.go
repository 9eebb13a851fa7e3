package page

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/spf13/cobra"
)

// New returns the command "serve".
func New(app *cli.App) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:     "serve [ROOT]",
		GroupID: cli.ToShow,
		Short:   "Serve a live page of the locks",
		Long: "serve shows the locks below ROOT on one page: holders, waiters, the wait-for graph and the holds of\n" +
			"the last ten minutes. It prints the page's URL, which has a token. It lists all znodes below ROOT, so\n" +
			"choose a directory that has only locks.",
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cli.Root(args)
			if err := framework.ValidatePath(root); err != nil {
				return cli.Usage(err)
			}
			if err := errors.Join(opts.check(), opts.Follow.Check()); err != nil {
				return cli.Usage(err)
			}
			c, err := app.Client()
			if err != nil {
				return err
			}
			return errors.Join(Run(cmd.Context(), app, c, root, opts), c.Close())
		},
	}
	opts.Define(cmd.Flags().StringVar)
	set := cmd.Flags()
	opts.Follow.Define(set)
	set.StringVar(&opts.Cert, "tls-cert", "", "certificate of the page, a `file` in PEM form")
	set.StringVar(&opts.Key, "tls-key", "", "key of the certificate, a `file`")
	set.StringVar(&opts.TokenFile, "token-file", "", "a `file` with the token; without it each start has a new token")
	set.StringArrayVar(&opts.AllowHosts, "allow-host", nil, "a further `host` and port by which the page may be asked for")
	set.BoolVar(&opts.AllowRevoke, "allow-revoke", false, "let the page ask holders to release")
	return cmd
}

// Define defines the flag that "demo" has, too.
func (o *Options) Define(stringVar func(p *string, name, value, usage string)) {
	stringVar(&o.Listen, "listen", "127.0.0.1:7181", "`address` of the page")
}

// Run follows the locks below root and serves their page, until ctx ends. It prints the page's URL to
// standard output. That ctx ends is no error.
func Run(ctx context.Context, app *cli.App, c *framework.Client, root string, opts Options) (err error) {
	live, err := inspect.Follow(c, root, opts.Follow.Limits())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	return opts.serve(ctx, app, Config{
		Source: live, Servers: strings.Join(c.Servers(), ","), Root: root,
		Log:    slog.New(slog.NewTextHandler(app.Err, nil)),
		Revoke: func(ctx context.Context, znode string) error { return lock.Revoke(ctx, c, znode) },
	})
}

func (o Options) serve(ctx context.Context, app *cli.App, cfg Config) error {
	token, err := o.token()
	if err != nil {
		return cli.Usage(err)
	}
	l, hosts, err := o.listen(ctx)
	if err != nil {
		return err
	}
	cfg.Token, cfg.Hosts = token, hosts
	if !o.AllowRevoke {
		cfg.Revoke = nil
	}
	if err := o.announce(app, l, token); err != nil {
		return errors.Join(err, l.Close())
	}
	return NewServer(cfg).Serve(ctx, l)
}

// announce prints the page's URL. It does not print an operator's own token, because standard output may
// go to a log.
func (o Options) announce(app *cli.App, l net.Listener, token string) error {
	if o.TokenFile == "" {
		_, err := fmt.Fprintf(app.Out, "%s/#token=%s\n", o.base(l), token)
		return err
	}
	_, err := fmt.Fprintf(app.Out, "%s/\n", o.base(l))
	fmt.Fprintf(app.Err, "docent: the page needs #token= and the token of %s after its URL. It listens at %s\n", o.TokenFile, l.Addr())
	return err
}

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
