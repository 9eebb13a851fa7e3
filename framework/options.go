package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/slogcore"
	"github.com/docent-go/docent/retry"
)

// An Option configures a [Client]. NewClient reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

// WithSessionTimeout asks for a session timeout: how long the ensemble keeps a
// session, and its locks, after it last heard of the client. The server has the
// last word; [Session] tells what was negotiated. It must lie between
// [MinSessionTimeout] and [MaxSessionTimeout]. The default is
// [DefaultSessionTimeout].
func WithSessionTimeout(timeout time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.sessionTimeout = timeout })
}

// WithConnectTimeout bounds one attempt to connect to one server: name
// resolution, TCP, TLS and ZooKeeper's handshake. While a session is at stake an
// attempt gets at most a quarter of the session timeout. It also bounds how
// long an operation waits for a connection before that counts as an attempt
// ([ErrNotConnected]). It must be positive. The default is
// [DefaultConnectTimeout].
func WithConnectTimeout(timeout time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.connectTimeout = timeout })
}

// WithLeaseMargin sets by how much a session's deadline lies before the moment
// at which the ensemble can expire it at the earliest. It has to exceed half a
// tick of the servers, the time in which a follower tells the leader whom it has
// heard of; one whole tick is advised. It must be at least 0 and less than the
// session timeout. If it is more than half the negotiated session timeout, that half
// is used, and an error is logged once a session. The default is
// [DefaultLeaseMargin], or a third of the negotiated session timeout where that is less.
func WithLeaseMargin(margin time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.leaseMargin, cfg.marginGiven = margin, true })
}

// WithRetry sets the policy by which operations are retried. The default is
// exponential with full jitter, from 50 ms up to 2 s, 5 retries.
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
// WithAuth("digest", []byte("user:password")). It may be given several times.
// The credential shows in no error and no log. [Client.AddAuth] adds one later.
func WithAuth(scheme string, credentials []byte) Option {
	return optionFunc(func(cfg *config) {
		cfg.auth = append(cfg.auth, credential{scheme, append([]byte(nil), credentials...)})
	})
}

// WithACL sets the ACL of the znodes that the client creates, or, as an option
// of [Client.Create], of the one znode and of the parents that are created with
// it. The default is [OpenACL], or the client's.
func WithACL(acl ...ACL) ACLOption { return ACLOption{append([]ACL(nil), acl...)} }

// An ACLOption is an [Option] and a [CreateOption].
type ACLOption struct{ acl []ACL }

func (o ACLOption) apply(cfg *config) { cfg.acl = o.acl }

func (o ACLOption) applyCreate(cfg *createConfig) { cfg.acl, cfg.given = o.acl, cfg.given|withACL }

// WithACLProvider sets where the ACL of a znode that the client creates comes
// from, per path: fn gets the path as the ensemble knows it, chroot and
// namespace included, and may return nil for the client's default ACL. An
// [ACLOption] of the call goes before. fn may be called concurrently.
func WithACLProvider(fn func(path string) []ACL) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: ACL provider: must not be nil"))
		}
		cfg.aclFor = fn
	})
}

// WithCompression gzips all data that is written and expects all data that is
// read to be gzipped, as a Curator client with enableCompression does, the data
// of locks included. The default is not to.
func WithCompression() Option {
	return optionFunc(func(cfg *config) { cfg.compression = true })
}

// WithMaxPacket sets how many bytes the longest request and the longest reply
// may have. The first should be what the servers' jute.maxbuffer says. A longer
// request fails with [ErrTooLarge] and is not sent. If a reply is longer, the client skips it
// and its request fails with ErrTooLarge; other requests are not affected. The client keeps a
// buffer of the first size and one of the second, the latter of 1.5 MB at the most until more
// is needed. Both must lie between [MinPacket] and [MaxPacket]. The defaults are [DefaultMaxRequest] and [DefaultMaxReply].
func WithMaxPacket(request, reply int) Option {
	return optionFunc(func(cfg *config) { cfg.maxRequest, cfg.maxReply = request, reply })
}

// WithinSession makes an operation that is being tried when its session ends
// fail with [ErrSessionEnded]. The default is to try on in the next session;
// [Client.InSession] binds single operations to a session that is known.
func WithinSession() Option {
	return optionFunc(func(cfg *config) { cfg.oneSession = true })
}

// WithRetryObserver has fn called before each pause between two attempts of an
// operation. It runs on the goroutine of the operation, so it must be quick,
// and may be called concurrently.
func WithRetryObserver(fn func(Retry)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: retry observer: must not be nil"))
		}
		cfg.onRetry = fn
	})
}

// WithEnsembleTracking makes the client follow the ensemble's own configuration
// (the znode /zookeeper/config, see [Client.Config]) to the servers that it names. The
// servers of the connect string remain as a fallback, which is tried when all of
// those have failed. An older configuration never replaces a newer one. The client
// leaves a server that was removed as soon as another one can be reached.
//
// A configuration that names no address for clients, as without dynamic
// reconfiguration, is ignored. A client with TLS goes to the secure addresses; servers
// before ZooKeeper 3.10 name none, and then it takes the hosts, at the port that all servers of the
// connect string have. The default is not to follow.
func WithEnsembleTracking() Option {
	return optionFunc(func(cfg *config) { cfg.tracking = true })
}

// WithTLS connects by TLS. Where the configuration names no server, each
// host's own name is verified.
func WithTLS(tlsConfig *tls.Config) Option {
	return optionFunc(func(cfg *config) {
		if tlsConfig == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: TLS configuration: must not be nil"))
			return
		}
		cfg.tls = tlsConfig.Clone()
	})
}

// WithDialer sets how TCP connections are made. The dialer gets the names of
// servers as the connect string has them, or their addresses if there is a
// [WithResolver]. It may be called from several goroutines. The default is a
// net.Dialer, which gets addresses.
func WithDialer(dial Dialer) Option {
	return optionFunc(func(cfg *config) { cfg.dial, cfg.dialerGiven = dial, true })
}

// WithResolver sets how the names of servers are resolved. Each address that a name
// stands for is tried once, in a random order; when all of all servers have failed the
// names are resolved again. TLS verifies the name, whatever the address. The
// resolver may be called from several goroutines. The default is
// net.DefaultResolver.LookupHost; with [WithDialer] it is none.
func WithResolver(resolve Resolver) Option {
	return optionFunc(func(cfg *config) {
		if resolve == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: resolver: must not be nil"))
		}
		cfg.resolve = resolve
	})
}

// WithLogger sets where the client logs to. The default is to log nothing. A
// line that belongs to a call carries the call's context in a field that zap's
// encoders skip, so that a core that sends logs to OpenTelemetry finds the span.
func WithLogger(logger *zap.Logger) Option {
	return optionFunc(func(cfg *config) { cfg.logger = logger })
}

// WithSlog is [WithLogger] for whoever logs by log/slog. A line that belongs to a
// call is handled with the call's context.
func WithSlog(logger *slog.Logger) Option {
	return optionFunc(func(cfg *config) {
		cfg.logger = nil // which is refused
		if logger != nil {
			cfg.logger = zap.New(slogcore.New(logger.Handler()))
		}
	})
}

// WithStateListener registers a listener as [Client.OnState] does, before the
// client begins to connect: it sees every transition from the first.
func WithStateListener(fn func(StateChange)) Option {
	return optionFunc(func(cfg *config) { cfg.listeners = append(cfg.listeners, fn) })
}

// A credential is a secret: it prints as its scheme alone.
type credential struct {
	scheme string
	secret []byte
}

// size returns how many bytes the credential's request has.
func (c credential) size() int { return authSize + len(c.scheme) + len(c.secret) }

func (c credential) String() string   { return c.scheme + ":***" }
func (c credential) GoString() string { return c.String() }
