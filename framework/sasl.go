package framework

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/docent-go/docent/framework/internal/digestmd5"
	"github.com/docent-go/docent/internal/usercall"
)

// A Mechanism is a mechanism of SASL with the identity that it proves. [WithSASL] takes it.
// [DigestMD5] returns one. The module github.com/docent-go/docent/kerberos has another. Its methods
// may be called concurrently.
type Mechanism interface {
	// Start begins an exchange with the server host, which is named as in the connect string. Work
	// that takes time belongs in Start, not in Next. Start obeys ctx, which ends when the attempt
	// to connect has to be over. An error that wraps [ErrAuthFailed] says that the credential is
	// refused. Any other error says that the attempt failed. An error is logged, so it must not
	// contain secrets.
	Start(ctx context.Context, host string) (Exchange, error)
}

// An Exchange is the client's side of one authentication of one connection. Its calls follow one
// another, on several goroutines.
type Exchange interface {
	// Next takes the server's latest token, nil before the first, and returns the token to send. If
	// done is true, the mechanism is complete once that token has been sent and accepted; the
	// server is authenticated then. If done is true and the token is nil, nothing is sent. An error
	// means that the server is refused. It is logged, so it must not contain secrets. If Next panics,
	// or has not returned when the attempt to connect has to be over, the attempt fails.
	Next(challenge []byte) (token []byte, done bool, err error)
}

// WithSASL authenticates every connection by a mechanism of SASL, before anything else is sent on
// it. The identity has the scheme "sasl" in an ACL. The client becomes [AuthFailed] if the server
// refuses it, has no SASL, or does not prove what the mechanism requires. It keeps trying. The
// default is no SASL.
func WithSASL(mechanism Mechanism) Option {
	return optionFunc(func(cfg *config) {
		switch m := mechanism.(type) {
		case nil:
			cfg.faults = append(cfg.faults, errors.New("framework: SASL mechanism: must not be nil"))
		case digestMechanism:
			if m.user == "" {
				cfg.faults = append(cfg.faults, errors.New("framework: SASL user: must not be empty"))
			}
		}
		cfg.sasl = mechanism
	})
}

// DigestMD5 returns the mechanism DIGEST-MD5. ZooKeeper's servers know its users and passwords from
// their JAAS configuration (DigestLoginModule). The password is not sent, and the server proves
// that it knows the password. The requests that follow are neither signed nor encrypted, and MD5 is
// weak: use it with [WithTLS]. Servers in FIPS mode, which is the default from ZooKeeper 3.9 on, do
// not offer it unless they run with -Dzookeeper.fips-mode=false; the errors that wrap
// [ErrAuthFailed] say so. No error and no log shows the password.
func DigestMD5(user, password string) Mechanism {
	return digestMechanism{user, func() string { return password }}
}

// A digestMechanism keeps its password so that no formatting prints it.
type digestMechanism struct {
	user     string
	password func() string
}

// Start is part of [Mechanism].
func (m digestMechanism) Start(context.Context, string) (Exchange, error) {
	return digestmd5.New(m.user, m.password()), nil
}

// startSASL begins the exchange for a connection to addr; it returns nil without a mechanism.
func (cfg *config) startSASL(ctx context.Context, addr string) (Exchange, error) {
	if cfg.sasl == nil {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	exchange, err := usercall.Bounded(ctx, cfg.calls, func() (Exchange, error) { return cfg.startExchange(ctx, host) }, nil)
	if err == nil && exchange == nil {
		err = errors.New("the mechanism started no exchange")
	}
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	return countedExchange{exchange, cfg.calls}, nil
}

// A countedExchange counts calls of Next, so that exchanges that never return are bounded.
type countedExchange struct {
	Exchange
	calls *usercall.Calls
}

func (c countedExchange) Next(challenge []byte) (token []byte, done bool, err error) {
	over, ok := c.calls.Count()
	if !ok {
		return nil, false, errors.New("not called: too many earlier calls have not returned")
	}
	defer over()
	return c.Exchange.Next(challenge)
}

// startExchange starts an exchange. If the mechanism panics, the attempt to connect fails.
func (cfg *config) startExchange(ctx context.Context, host string) (exchange Exchange, err error) {
	err = errors.New("the mechanism panicked")
	usercall.Guard(cfg.logger.Named("zk"), "WithSASL", func() { exchange, err = cfg.sasl.Start(ctx, host) })
	return exchange, err
}
