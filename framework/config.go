package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/retry"
)

// Defaults of [NewClient]'s options.
const (
	// DefaultSessionTimeout is long enough for a garbage collection or a leader election. It is
	// short enough to free a crashed holder's locks within half a minute. A server caps it at 20 of
	// its ticks (40 s by default).
	DefaultSessionTimeout = 30 * time.Second
	// DefaultConnectTimeout covers a TCP and TLS handshake over a slow network (dial, first reply
	// of the server). It leaves time to try other servers before a session ends.
	DefaultConnectTimeout = 5 * time.Second
	// DefaultLeaseMargin is the most that the lease margin is by default. It covers observer masters
	// with a tick of up to three seconds; a server's default tick is two. See [WithLeaseMargin].
	DefaultLeaseMargin = 3500 * time.Millisecond
	// DefaultMaxRequest is the longest request that a server with the default configuration accepts
	// (jute.maxbuffer).
	DefaultMaxRequest = 1<<20 - 1
	// DefaultMaxReply is the size of the largest znode and of the rest of its reply.
	DefaultMaxReply = 1<<20 + 64<<10
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

// A Dialer connects to addr ("host:port"), within ctx.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

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
	oneSession bool
	tracking   bool
	readOnly   bool
	onRetry    func(Retry)
	listeners  []func(StateChange)
	faults     []error // of options whose arguments are checked at once
}

// A connectConfig says where a client connects, and how.
type connectConfig struct {
	servers        []string
	source         func(context.Context) ([]string, error) // of servers; nil if there is none
	connectTimeout time.Duration
	tls            *tls.Config
	dial           Dialer   // nil until all options have been applied, unless one sets it
	resolve        Resolver // nil if the dialer takes names; obeys its context
	calls          *usercall.Calls
	dialerGiven    bool
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

// A telemetryConfig says where a client's telemetry goes.
type telemetryConfig struct {
	logger  *zap.Logger          // writes on a goroutine of lines
	lines   *usercall.Queue      // of the log
	tracers trace.TracerProvider // nil for the global one
	meters  metric.MeterProvider // nil for the global one
	spans   otelzk.SpanMode
}

// newConfig returns the configuration, or all its faults.
func newConfig(connect string, opts []Option) (config, error) {
	cfg := config{
		connectConfig:   connectConfig{connectTimeout: DefaultConnectTimeout, calls: new(usercall.Calls)},
		leaseConfig:     leaseConfig{sessionTimeout: DefaultSessionTimeout, leaseMargin: DefaultLeaseMargin},
		znodeConfig:     znodeConfig{acl: acl.Open()},
		telemetryConfig: telemetryConfig{logger: zap.NewNop(), lines: new(usercall.Queue)},
		retry:           retry.BoundedExponential(50*time.Millisecond, 2*time.Second, 5),
		maxRequest:      DefaultMaxRequest,
		maxReply:        DefaultMaxReply,
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
// each credential that is empty or longer than a request.
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
		if credential.scheme == "" {
			faults = append(faults, fmt.Errorf("framework: credential %d: scheme must not be empty", i))
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
