package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/slogcore"
	"github.com/docent-go/docent/retry"
)

// An Option configures a [Client]. NewClient reports all invalid options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

// WithSessionTimeout asks for a session timeout: how long the ensemble keeps a session, and its
// locks, after the last message that it received from the client. The server decides; [Session] has
// the negotiated timeout. It must lie between 100 ms and 2³¹-1 ms. The default is
// [DefaultSessionTimeout].
func WithSessionTimeout(timeout time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.sessionTimeout = timeout })
}

// WithConnectTimeout bounds one attempt to connect to one server: name resolution, TCP, TLS and
// ZooKeeper's handshake. While a session can still be kept, an attempt gets at most a quarter of
// the session timeout. The connect timeout also bounds how long an operation waits for a connection
// before that counts as an attempt ([ErrNotConnected]), and how long an attempt at a lock takes that
// does not wait for another holder (TryLock). It must be positive. The default is
// [DefaultConnectTimeout].
func WithConnectTimeout(timeout time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.connectTimeout = timeout })
}

// WithLeaseMargin sets how far a session's deadline lies before the earliest moment at which the
// ensemble can expire the session. The margin has to exceed half a tick of the servers, because a
// follower reports its sessions to the leader that often. Behind an observer master it has to exceed a
// whole tick: an observer reports to that follower, and the follower to the leader. Two ticks are
// advised. The margin must be at least 0 and less than the session timeout. If it is more than half
// the negotiated session timeout, that half is used, and the client logs an error once a session. The
// default is [DefaultLeaseMargin], or a third of the negotiated session timeout if that is less. So
// with the default, a tick of two seconds and observer masters, the session timeout has to exceed six
// seconds, better eight.
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
// WithAuth("digest", []byte("user:password")). It may be given several times. No error and no log
// shows the credential. [Client.AddAuth] adds a credential later.
func WithAuth(scheme string, credentials []byte) Option {
	return optionFunc(func(cfg *config) {
		cfg.auth = append(cfg.auth, credential{scheme, append([]byte(nil), credentials...)})
	})
}

// WithACL sets an ACL. As an option of the client it is the ACL of the znodes that the client
// creates. As an option of [Client.Create] it is the ACL of that znode and of the parents that are
// created with it. The default is [acl.Open], or the client's ACL.
func WithACL(list ...acl.Entry) ACLOption { return ACLOption{append([]acl.Entry(nil), list...)} }

// An ACLOption is an [Option] and a [CreateOption].
type ACLOption struct{ acl []acl.Entry }

func (o ACLOption) apply(cfg *config) { cfg.acl = o.acl }

func (o ACLOption) applyCreate(cfg *createConfig) { cfg.acl, cfg.given = o.acl, cfg.given|withACL }

// WithACLProvider sets the function that returns the ACL of a znode that the client creates. fn
// gets the path as the ensemble knows it, with chroot and namespace, and may return nil for the
// client's default ACL. An [ACLOption] of the call takes precedence. fn may be called concurrently.
func WithACLProvider(fn func(path string) []acl.Entry) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: ACL provider: must not be nil"))
		}
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
// The client keeps one buffer for requests and one for replies, each of the size given. The buffer
// for replies has at most 1.5 MB until a reply needs more. Both sizes must lie between 4 KiB and
// 1 GiB. The defaults are [DefaultMaxRequest] and [DefaultMaxReply].
func WithMaxPacket(request, reply int) Option {
	return optionFunc(func(cfg *config) { cfg.maxRequest, cfg.maxReply = request, reply })
}

// WithinSession bounds each operation to one session: if the session ends during the attempts, the
// operation fails with [ErrSessionEnded]. The default is to continue in the next session.
// [Client.InSession] binds operations to a given session.
func WithinSession() Option {
	return optionFunc(func(cfg *config) { cfg.oneSession = true })
}

// WithRetryObserver sets a function that is called before each pause between two attempts of an
// operation. fn runs on the goroutine of the operation, so it must be quick. It may be called
// concurrently.
func WithRetryObserver(fn func(Retry)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: retry observer: must not be nil"))
		}
		cfg.onRetry = fn
	})
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
		if tlsConfig == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: TLS configuration: must not be nil"))
			return
		}
		cfg.tls = tlsConfig.Clone()
	})
}

// WithDialer sets how TCP connections are made. The dialer gets the names of servers as the connect
// string has them, or their addresses if there is a [WithResolver]. It may be called from several
// goroutines. The default is a net.Dialer, which gets addresses.
func WithDialer(dial Dialer) Option {
	return optionFunc(func(cfg *config) { cfg.dial, cfg.dialerGiven = dial, true })
}

// WithResolver sets how the names of servers are resolved. The client tries each address of a name
// once, in a random order. When all addresses of all servers have failed, the client resolves the
// names again. TLS verifies the name, whatever the address. The resolver may be called from several
// goroutines. The default is net.DefaultResolver.LookupHost; with [WithDialer] it is none.
func WithResolver(resolve Resolver) Option {
	return optionFunc(func(cfg *config) {
		if resolve == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: resolver: must not be nil"))
		}
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
	scheme string
	secret []byte
}

// size returns how many bytes the credential's request has.
func (c credential) size() int { return authSize + len(c.scheme) + len(c.secret) }

func (c credential) String() string   { return c.scheme + ":***" }
func (c credential) GoString() string { return c.String() }
