package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/digestmd5"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/usercall"
)

// A credentials keeps the credentials with which a client authenticates each of its connections.
type credentials struct {
	mu     sync.Mutex // guards following, and trials' fields; never held across a request
	kept   []credential
	trials []*trial // in progress, oldest first
}

// A trial is a credential that [Client.AddAuth] adds. Each connection that begins meanwhile
// presents it. If a server accepts the credential, it is kept. The trial ends once it is known
// whether that connection serves.
type trial struct {
	credential credential    // immutable
	done       chan struct{} // closed when the trial is over, with err set first

	// guarded by credentials.mu
	accepted bool
	over     bool
	err      error
}

// begin puts a credential on trial.
func (cs *credentials) begin(c credential) *trial {
	t := &trial{credential: c, done: make(chan struct{})}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.trials = append(cs.trials, t)
	return t
}

// answered records a server's reply to the credential of t.
func (cs *credentials) answered(t *trial, accepted bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch {
	case t.over || t.accepted:
	case accepted:
		t.accepted = true
		cs.kept = slices.DeleteFunc(cs.kept, t.credential.replaces)
		cs.kept = append(cs.kept, t.credential)
	default:
		cs.endLocked(t, ErrAuthFailed)
	}
}

// open reports whether no server has replied to the credential of t.
func (cs *credentials) open(t *trial) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return !t.over && !t.accepted
}

// endAccepted ends the trials whose credential was accepted: with nil if the client is connected now,
// else with the reason.
func (cs *credentials) endAccepted(err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, t := range slices.Clone(cs.trials) {
		if t.accepted {
			cs.endLocked(t, err)
		}
	}
}

// withdraw ends t if it has not ended. A credential that was accepted is still kept.
func (cs *credentials) withdraw(t *trial) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !t.over {
		cs.endLocked(t, nil)
	}
}

// endLocked ends t. It needs mu.
func (cs *credentials) endLocked(t *trial, err error) {
	t.over, t.err = true, err
	close(t.done)
	cs.trials = slices.DeleteFunc(cs.trials, func(other *trial) bool { return other == t })
}

// present returns the credentials that a new connection presents. The credentials on trial come
// first, because a server reads nothing after one that it refuses.
func (cs *credentials) present() []wire.Credential {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	kept := slices.Clone(cs.kept)
	var all []wire.Credential
	for _, t := range cs.trials {
		if t.accepted {
			continue // the kept credentials include it
		}
		kept = slices.DeleteFunc(kept, t.credential.replaces)
		all = append(all, wire.Credential{
			Scheme: t.credential.scheme, Secret: t.credential.secret,
			Answered: func(accepted bool) { cs.answered(t, accepted) },
		})
	}
	return append(all, presented(kept)...)
}

// all returns the credentials that are kept.
func (cs *credentials) all() []wire.Credential {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return presented(cs.kept)
}

func presented(list []credential) []wire.Credential {
	all := make([]wire.Credential, len(list))
	for i, c := range list {
		all[i] = wire.Credential{Scheme: c.scheme, Secret: c.secret}
	}
	return all
}

// replaces reports whether c replaces old: both have one scheme, and the user is the same or
// unknown. Only the scheme digest shows the user.
func (c credential) replaces(old credential) bool {
	return c.scheme == old.scheme && (c.scheme != "digest" || bytes.Equal(c.user(), old.user()))
}

// user returns the user of a credential of the scheme digest.
func (c credential) user() []byte {
	user, _, _ := bytes.Cut(c.secret, []byte(":"))
	return user
}

// AddAuth adds a credential to those that the client presents on every connection, as [WithAuth]
// does, and returns nil once a server has accepted it. It replaces an earlier credential of the
// same scheme; in the scheme "digest" the user has to be the same, too. So a password or a token
// can be rotated. ZooKeeper removes no identity from a connection: the replaced identity is gone
// with the next connection. All views of the client share the credentials.
//
// If the client is Connected, AddAuth presents the credential on the present connection. Otherwise
// the next connection presents it, and AddAuth waits for that; a client that is [AuthFailed]
// connects again at once. If ctx ends first, the credential may have been added; the error wraps
// ctx's error.
//
// If a server refuses the credential, the error wraps [ErrAuthFailed], and the client keeps its
// earlier credentials. The server closes the connection after a refusal; the session continues. The
// error also wraps ErrAuthFailed if the client stays AuthFailed for another reason; the new
// credential is kept then. Other errors: [ErrTooLarge], before anything is sent, and [ErrClosed].
// No error shows the credential.
func (c *Client) AddAuth(ctx context.Context, scheme string, secret []byte) error {
	usercall.Require("ctx", ctx != nil)
	return c.callError(ctx, "add auth", "", c.core.addAuth(ctx, credential{scheme, append([]byte(nil), secret...)}))
}

func (c *core) addAuth(ctx context.Context, added credential) error {
	if added.scheme == "" {
		return errors.New("scheme must not be empty")
	}
	if err := c.checkSize(added.size()); err != nil {
		return err
	}
	t := c.credentials.begin(added)
	defer c.credentials.withdraw(t)
	if s := c.refusedSession(); s != nil {
		s.Renew()
	}
	for {
		c.mu.Lock()
		state, s, changed := c.state, c.session, c.changed
		c.mu.Unlock()
		if state == Connected && ctx.Err() == nil && c.credentials.open(t) {
			c.present(ctx, s, t)
		}
		select {
		case <-t.done:
			return t.err
		case <-changed: // presenting failed: the state follows, and the next connection
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), c.notConnected())
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// refusedSession returns the session that is to be connected, if a server has refused a credential.
func (c *core) refusedSession() *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != AuthFailed {
		return nil
	}
	return c.running
}

// present presents the credential of t on the present connection. If there is no reply, the trial t
// continues.
func (c *core) present(ctx context.Context, s *session.Session, t *trial) {
	accepted, err := s.Present(ctx, t.credential.scheme, t.credential.secret)
	if err != nil {
		return
	}
	c.credentials.answered(t, accepted)
	c.credentials.endAccepted(nil)
}

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

// validateACL returns all faults of the list; its errors name the argument what.
func validateACL(what string, list []acl.Entry) error {
	if len(list) == 0 {
		return fmt.Errorf("%s: must have at least one entry", what)
	}
	for i, entry := range list {
		if entry.Perms < 1 || entry.Perms > acl.All {
			return fmt.Errorf("%s: entry %d: permissions %d: must be between 1 and %d", what, i, entry.Perms, acl.All)
		}
		if entry.Scheme == "" {
			return fmt.Errorf("%s: entry %d: scheme must not be empty", what, i)
		}
	}
	return nil
}
