package framework

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/docent-go/docent/framework/internal/digestmd5"
)

// A Mechanism is a mechanism of SASL with the identity that it proves. It has to be
// given to [WithSASL]. [DigestMD5] returns one. The module
// github.com/docent-go/docent/kerberos has another. Its methods may be called concurrently.
type Mechanism interface {
	// Start begins an exchange with the server host, which is named as in the
	// connect string. What takes time belongs here: Start obeys ctx, which ends when the
	// attempt to connect has to be over. An error that wraps [ErrAuthFailed] says
	// that the credential is refused; any other says that the attempt failed. An error
	// is logged, so it must not have secrets in it.
	Start(ctx context.Context, host string) (Exchange, error)
}

// An Exchange is one authentication of one connection, the client's side of it. It is
// used by one goroutine.
type Exchange interface {
	// Next takes the server's latest token, nil before the first, and returns the
	// token to send. done means that the mechanism is complete, so that the
	// server is authenticated, once that token has been sent and accepted; a nil token is then
	// not sent at all. An error means that the server is refused. It is logged, so it
	// must not have secrets in it.
	Next(challenge []byte) (token []byte, done bool, err error)
}

// WithSASL authenticates every connection by a mechanism of SASL, before anything else is
// sent on it. The identity has the scheme "sasl" in an ACL. If the server refuses the
// client, or has no SASL, or does not prove what the mechanism wants to have
// proven, the state is [AuthFailed], and the client goes on to try. The default is no SASL.
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

// DigestMD5 returns the mechanism DIGEST-MD5, by which ZooKeeper's servers know users
// whose passwords stand in their JAAS configuration (DigestLoginModule). The password is
// not sent, and the server proves that it knows it. The requests that follow are
// neither signed nor encrypted, and MD5 is weak: use it with [WithTLS]. It cannot
// be used where servers are in FIPS mode. The password shows in no error and no log.
func DigestMD5(user, password string) Mechanism {
	return digestMechanism{user, func() string { return password }}
}

// A digestMechanism has its password where no formatting finds it.
type digestMechanism struct {
	user     string
	password func() string
}

// Start is part of [Mechanism].
func (m digestMechanism) Start(context.Context, string) (Exchange, error) {
	return digestmd5.New(m.user, m.password()), nil
}

// startSASL begins the exchange for a connection to addr, or returns nil if there is
// to be none.
func (cfg *config) startSASL(ctx context.Context, addr string) (Exchange, error) {
	if cfg.sasl == nil {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	exchange, err := cfg.sasl.Start(ctx, host)
	if err == nil && exchange == nil {
		err = errors.New("the mechanism started no exchange")
	}
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	return exchange, nil
}
