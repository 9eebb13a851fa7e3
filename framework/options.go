package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/internal/slogcore"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/retry"
)

// An Option configures a [Client]. NewClient reports all invalid options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

// WithSessionTimeout asks for a session timeout: how long the ensemble keeps a session, and its
// locks, after the last message that it received from the client. The server decides; [Session] has
// the negotiated timeout. It must lie between 100 ms and 2³¹-1 ms. The default is
// 30 s: long enough for a garbage collection or a leader election, and short enough to free a crashed
// holder's locks within half a minute. A server caps it at 20 of its ticks (40 s by default).
func WithSessionTimeout(timeout time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.sessionTimeout = timeout })
}

// WithConnectTimeout bounds one attempt to connect to one server: name resolution, TCP, TLS and
// ZooKeeper's handshake. While a session can still be kept, an attempt gets at most a quarter of
// the session timeout. The connect timeout also bounds how long an operation waits for a connection
// before that counts as an attempt ([ErrNotConnected]), and how long an attempt at a lock takes that
// does not wait for another holder (TryLock). It must be positive. The default is 5 s.
func WithConnectTimeout(timeout time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.connectTimeout = timeout })
}

// WithLeaseMargin sets how far a session's deadline lies before the earliest moment at which the
// ensemble can expire the session. The margin has to exceed half a tick of the servers, because a
// follower reports its sessions to the leader that often. Behind an observer master it has to exceed a
// whole tick: an observer reports to that follower, and the follower to the leader. Two ticks are
// advised. The margin must be at least 0 and less than the session timeout. If it is more than half
// the negotiated session timeout, that half is used, and the client logs an error once a session. The
// default is 3.5 s, or a third of the negotiated session timeout if that is less. So with the default,
// a tick of two seconds and observer masters, the session timeout has to exceed six seconds, better
// eight. [Session] has the margin that is used.
func WithLeaseMargin(margin time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.leaseMargin, cfg.marginGiven = margin, true })
}

// WithRetry sets the policy by which operations are retried. The default is exponential with full
// jitter, from 50 ms up to 2 s, with 5 retries.
func WithRetry(policy retry.Policy) Option {
	return optionFunc(func(cfg *config) { cfg.retry = policy })
}

// WithNamespace puts every path of the client below the path "/"+ns, in
// addition to the connect string's chroot. ns may have several elements.
func WithNamespace(ns string) Option {
	return optionFunc(func(cfg *config) {
		prefix, err := namespacePrefix(ns)
		if err != nil {
			cfg.faults = append(cfg.faults, fmt.Errorf("framework: %w", err))
			return
		}
		cfg.prefix += prefix
	})
}

// WithAuth authenticates every connection with a credential, as in
// WithAuth("digest", []byte("user:password")); one without user or password is a fault. It may be given several
// times. No error and no log shows the credential. [Client.AddAuth] adds a credential later.
func WithAuth(scheme string, credentials []byte) Option {
	return optionFunc(func(cfg *config) {
		cfg.auth = append(cfg.auth, credential{scheme: scheme, secret: append([]byte(nil), credentials...)})
	})
}

// WithACL sets an ACL. As an option of the client it is the ACL of the znodes that the client
// creates. As an option of [Client.Create] it is the ACL of that znode and of the parents that are
// created with it. The default is [acl.Open], or the client's ACL.
func WithACL(list ...acl.Entry) interface {
	Option
	CreateOption
} {
	return aclOption{append([]acl.Entry(nil), list...)}
}

type aclOption struct{ acl []acl.Entry }

func (o aclOption) apply(cfg *config) { cfg.acl = o.acl }

func (o aclOption) applyCreate(cfg *createConfig) { cfg.acl, cfg.given = o.acl, cfg.given|withACL }

// WithACLProvider sets the function that returns the ACL of a znode that the client creates. fn
// gets the path as the ensemble knows it, with chroot and namespace, and may return nil for the
// client's default ACL. The [WithACL] of a call takes precedence. fn may be called concurrently.
func WithACLProvider(fn func(path string) []acl.Entry) Option {
	return optionFunc(func(cfg *config) {
		cfg.require("ACL provider", fn != nil)
		cfg.aclFor = fn
	})
}

// WithCompression gzips all data that the client writes, and expects all data that it reads to be
// gzipped, as a Curator client with enableCompression does. It includes the data of locks. The
// default is no compression.
func WithCompression() Option {
	return optionFunc(func(cfg *config) { cfg.compression = true })
}

// WithMaxPacket sets how many bytes the longest request and the longest reply may have. The first
// should equal the servers' jute.maxbuffer. If a request is longer, the client does not send it and
// the request fails with [ErrTooLarge]. If a reply is longer, the client skips it and its request
// fails with ErrTooLarge; other requests are not affected.
//
// Both sizes must lie between 4 KiB and 1 GiB. The client keeps no buffers of these sizes. The defaults
// are 1 MiB - 1, as by default for the servers, and 1 MiB + 64 KiB.
func WithMaxPacket(request, reply int) Option {
	return optionFunc(func(cfg *config) { cfg.maxRequest, cfg.maxReply = request, reply })
}

// WithEnsembleTracking makes the client follow the ensemble's own configuration (the znode
// /zookeeper/config, which [Client.Config] reads) to the servers that it names. The servers of the
// connect string remain as a fallback, for when all servers of the configuration have failed. An
// older configuration never replaces a newer one. If a server was removed, the client leaves it as
// soon as it can reach another server.
//
// A configuration that names no address for clients is ignored; without dynamic reconfiguration,
// none does. A client with TLS connects to the secure addresses. Servers older than ZooKeeper 3.10
// name no secure addresses. The client then uses the hosts, with the port that all servers of the
// connect string have. The default is not to follow.
func WithEnsembleTracking() Option {
	return optionFunc(func(cfg *config) { cfg.tracking = true })
}

// WithTLS connects by TLS. If the configuration names no server, the name of each host is verified.
func WithTLS(tlsConfig *tls.Config) Option {
	return optionFunc(func(cfg *config) {
		cfg.require("TLS configuration", tlsConfig != nil)
		cfg.tls = tlsConfig.Clone()
	})
}

// WithDialer sets how TCP connections are made. The dialer connects to addr ("host:port") within ctx. It gets
// the names of servers as the connect string has them, or their addresses if there is a [WithResolver]. It
// may be called from several goroutines. The default is a net.Dialer, which gets addresses.
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return optionFunc(func(cfg *config) { cfg.dial, cfg.dialerGiven = dial, true })
}

// WithResolver sets how the names of servers are resolved. The client tries each address of a name
// once, in a random order. When all addresses of all servers have failed, the client resolves the
// names again. TLS verifies the name, whatever the address. The resolver may be called from several
// goroutines. The default is net.DefaultResolver.LookupHost; with [WithDialer] it is none.
func WithResolver(resolve func(ctx context.Context, host string) (addrs []string, err error)) Option {
	return optionFunc(func(cfg *config) {
		cfg.require("resolver", resolve != nil)
		cfg.resolve = resolve
	})
}

// WithLogger sets the logger of the client. The default is to log nothing. If a line belongs to a
// call, a field has the call's context. zap's encoders skip that field, and a core that sends logs
// to OpenTelemetry finds the span in it.
func WithLogger(logger *zap.Logger) Option {
	return optionFunc(func(cfg *config) { cfg.logger = logger })
}

// WithSlog is [WithLogger] for users of log/slog. If a line belongs to a call, it is handled with
// the call's context.
func WithSlog(logger *slog.Logger) Option {
	return optionFunc(func(cfg *config) {
		cfg.logger = nil // which is refused
		if logger != nil {
			cfg.logger = zap.New(slogcore.New(logger.Handler()))
		}
	})
}

// WithStateListener registers a listener as [Client.OnState] does, before the client begins to
// connect. The listener gets every transition from the first.
func WithStateListener(fn func(StateChange)) Option {
	return optionFunc(func(cfg *config) { cfg.listeners = append(cfg.listeners, fn) })
}

// A credential is a secret: it prints as its scheme only.
type credential struct {
	scheme   string
	secret   []byte
	addition int // the number of the call of AddAuth; 0 for WithAuth
}

// size returns how many bytes the credential's request has.
func (c credential) size() int { return authSize + len(c.scheme) + len(c.secret) }

func (c credential) String() string   { return c.scheme + ":***" }
func (c credential) GoString() string { return c.String() }

// Defaults of [NewClient]'s options.
const (
	// defaultSessionTimeout: see [WithSessionTimeout].
	defaultSessionTimeout = 30 * time.Second
	// defaultConnectTimeout covers a TCP and TLS handshake over a slow network (dial, first reply
	// of the server). It leaves time to try other servers before a session ends.
	defaultConnectTimeout = 5 * time.Second
	// defaultLeaseMargin is the most that the lease margin is by default. It covers observer masters
	// with a tick of up to three seconds; a server's default tick is two. See [WithLeaseMargin].
	defaultLeaseMargin = 3500 * time.Millisecond
	// defaultMaxRequest is the longest request that a server with the default configuration accepts
	// (jute.maxbuffer).
	defaultMaxRequest = 1<<20 - 1
	// defaultMaxReply is the size of the largest znode and of the rest of its reply.
	defaultMaxReply = 1<<20 + 64<<10
)

// Bounds of options.
const (
	// minSessionTimeout is the shortest session timeout that a client can ask for. The server may
	// grant a longer one.
	minSessionTimeout = 100 * time.Millisecond
	// maxSessionTimeout is the longest session timeout: as many milliseconds as 32 bits hold.
	maxSessionTimeout = (1<<31 - 1) * time.Millisecond
	// minPacket is the least size that [WithMaxPacket] accepts, in bytes.
	minPacket = 4 << 10
	// maxPacket is the greatest size that [WithMaxPacket] accepts, in bytes.
	maxPacket = 1 << 30
)

// A config has the values of a client's options. It is immutable once newConfig has returned it.
type config struct {
	connectConfig
	leaseConfig
	znodeConfig
	telemetryConfig
	retry      retry.Policy
	auth       []credential
	sasl       Mechanism // nil for none
	maxRequest int
	maxReply   int
	tracking   bool
	readOnly   bool
	listeners  []func(StateChange)
	faults     []error // of options whose arguments are checked at once
}

// A connectConfig says where a client connects, and how.
type connectConfig struct {
	servers        []string
	source         func(context.Context) ([]string, error) // of servers; nil if there is none
	connectTimeout time.Duration
	tls            *tls.Config
	// dial is nil until all options have been applied, unless one sets it.
	dial        func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve     hosts.Resolver // nil if the dialer takes names; obeys its context
	calls       *usercall.Calls
	dialerGiven bool
}

// A leaseConfig says how long sessions last.
type leaseConfig struct {
	sessionTimeout time.Duration
	leaseMargin    time.Duration
	marginGiven    bool
}

// A znodeConfig has the paths, the ACLs and the encoding of a client's znodes.
type znodeConfig struct {
	chroot      string // "" or a path
	prefix      string // chroot and namespace, "" or a path
	acl         []acl.Entry
	aclFor      func(path string) []acl.Entry // nil for acl everywhere
	compression bool
}

// inChroot reports whether the chroot is the path, or below it.
func (c *znodeConfig) inChroot(path string) bool { return strings.HasPrefix(c.chroot+"/", path+"/") }

// A telemetryConfig says where a client's telemetry goes.
type telemetryConfig struct {
	logger  *zap.Logger          // writes on a goroutine of lines
	lines   *usercall.Queue      // of the log
	tracers trace.TracerProvider // nil for the global one
	meters  metric.MeterProvider // nil for the global one
}

// newConfig returns the configuration, or all its faults.
func newConfig(connect string, opts []Option) (config, error) {
	cfg := config{
		connectConfig:   connectConfig{connectTimeout: defaultConnectTimeout, calls: new(usercall.Calls)},
		leaseConfig:     leaseConfig{sessionTimeout: defaultSessionTimeout, leaseMargin: defaultLeaseMargin},
		znodeConfig:     znodeConfig{acl: acl.Open()},
		telemetryConfig: telemetryConfig{logger: zap.NewNop(), lines: new(usercall.Queue)},
		retry:           retry.BoundedExponential(50*time.Millisecond, 2*time.Second, 5),
		maxRequest:      defaultMaxRequest,
		maxReply:        defaultMaxReply,
	}
	for i, opt := range opts {
		if opt == nil {
			cfg.faults = append(cfg.faults, fmt.Errorf("framework: option %d: must not be nil", i))
			continue
		}
		opt.apply(&cfg)
	}
	parse := parseConnectString
	if cfg.source != nil {
		parse = parseSourced
	}
	parsed, err := parse(connect)
	cfg.servers, cfg.chroot, cfg.prefix = parsed.servers, parsed.chroot, parsed.chroot+cfg.prefix
	cfg.faults = append([]error{err}, cfg.faults...)
	if !cfg.dialerGiven {
		cfg.dial = new(net.Dialer).DialContext
		if cfg.resolve == nil {
			cfg.resolve = net.DefaultResolver.LookupHost
		}
	}
	if cfg.resolve != nil {
		cfg.resolve = bounded(cfg.resolve, cfg.calls)
	}
	faults := append(cfg.faults, cfg.validate()...)
	if cfg.logger != nil {
		cfg.logger = usercall.Unblocked(cfg.logger, cfg.lines)
	}
	return cfg, errors.Join(faults...)
}

// require is called by an option whose argument must not be nil.
func (cfg *config) require(what string, given bool) {
	if !given {
		cfg.faults = append(cfg.faults, fmt.Errorf("framework: %s: must not be nil", what))
	}
}

// validate returns all faults.
func (cfg *config) validate() []error {
	faults := slices.Concat(cfg.leaseFaults(), cfg.packetFaults())
	faultf := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("framework: "+format, args...))
	}
	if cfg.connectTimeout <= 0 {
		faultf("connect timeout %v: must be positive", cfg.connectTimeout)
	}
	if err := retry.Validate(cfg.retry); err != nil {
		faultf("retry policy: %w", err)
	}
	if err := validateACL("ACL", cfg.acl); err != nil {
		faultf("%w", err)
	}
	if cfg.dial == nil {
		faultf("dialer: must not be nil")
	}
	if cfg.logger == nil {
		faultf("logger: must not be nil")
	}
	for _, fn := range cfg.listeners {
		if fn == nil {
			faultf("state listener: must not be nil")
		}
	}
	return faults
}

// leaseFaults returns all faults of the session timeout and the lease margin.
func (cfg *config) leaseFaults() (faults []error) {
	if t := cfg.sessionTimeout; t < minSessionTimeout || t > maxSessionTimeout {
		faults = append(faults, fmt.Errorf("framework: session timeout %v: must be between %v and %v",
			t, minSessionTimeout, maxSessionTimeout))
	}
	if m := cfg.leaseMargin; m < 0 || cfg.marginGiven && m >= cfg.sessionTimeout {
		faults = append(faults, fmt.Errorf("framework: lease margin %v: must be at least 0 and less than the session timeout %v",
			m, cfg.sessionTimeout))
	}
	return faults
}

// packetFaults returns all faults of the sizes of requests and replies. It also returns a fault for
// each credential that no server can use, or that is longer than a request.
func (cfg *config) packetFaults() (faults []error) {
	for _, size := range []struct {
		what  string
		bytes int
	}{{"request", cfg.maxRequest}, {"reply", cfg.maxReply}} {
		if size.bytes < minPacket || size.bytes > maxPacket {
			faults = append(faults, fmt.Errorf("framework: largest %s %d: must be between %d and %d",
				size.what, size.bytes, minPacket, maxPacket))
		}
	}
	for i, credential := range cfg.auth {
		if err := credential.fault(); err != nil {
			faults = append(faults, fmt.Errorf("framework: credential %d: %w", i, err))
		}
		if size := credential.size(); size > cfg.maxRequest {
			faults = append(faults, fmt.Errorf("framework: credential %d: its request has %d bytes: must be at most %d",
				i, size, cfg.maxRequest))
		}
	}
	return faults
}

// margin returns the lease margin for the negotiated session timeout. A greater margin would leave
// a lease no time between two heartbeats.
func (cfg *config) margin(timeout time.Duration) time.Duration {
	if cfg.marginGiven {
		return min(cfg.leaseMargin, timeout/2)
	}
	return min(cfg.leaseMargin, timeout/3)
}

// WithTracerProvider sets the provider of the spans of the client and of the recipes on it. The
// default is OpenTelemetry's global provider, which makes none until an application sets it up.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return optionFunc(func(cfg *config) { cfg.tracers = provider })
}

// WithMeterProvider sets the provider of the metrics of the client and of the recipes on it. The
// default is OpenTelemetry's global provider, which keeps none until an application sets it up.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(cfg *config) { cfg.meters = provider })
}

// TracerProvider returns the provider of the client's spans, for recipes.
func (c *Client) TracerProvider() trace.TracerProvider { return c.core.cfg.tracerProvider() }

// MeterProvider returns the provider of the client's metrics, for recipes.
func (c *Client) MeterProvider() metric.MeterProvider { return c.core.cfg.meterProvider() }

func (cfg *config) tracerProvider() trace.TracerProvider {
	if cfg.tracers == nil {
		return otel.GetTracerProvider()
	}
	return cfg.tracers
}

func (cfg *config) meterProvider() metric.MeterProvider {
	if cfg.meters == nil {
		return otel.GetMeterProvider()
	}
	return cfg.meters
}

// Logger returns the client's logger, for recipes; it is never nil.
func (c *Client) Logger() *zap.Logger { return c.core.log }

// newTelemetry returns the telemetry of a new client, which has not started.
func newTelemetry(c *core) *otelzk.Telemetry {
	var states []string
	for s := Connecting; s <= ReadOnly; s++ {
		states = append(states, s.key())
	}
	return otelzk.New(otelzk.Config{
		Namespace: c.cfg.prefix,
		Tracers:   c.cfg.tracerProvider(),
		Meters:    c.cfg.meterProvider(),
		Log:       c.log,
		States:    states,
		Ends:      []error{ErrSessionExpired, ErrSessionDeadline},
		Now: func() otelzk.Snapshot {
			return otelzk.Snapshot{
				State: c.presentState().key(), Deletes: c.deletes.pending(), Watches: c.watchCount(),
			}
		},
	})
}

// bounded returns a resolver that returns when its context ends, and fails if resolve panics.
func bounded(resolve hosts.Resolver, calls *usercall.Calls) hosts.Resolver {
	return func(ctx context.Context, host string) ([]string, error) {
		return usercall.Bounded(ctx, calls, func() ([]string, error) { return resolve(ctx, host) }, nil)
	}
}
