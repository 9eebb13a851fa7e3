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
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
)

// A credentials keeps the credentials with which a client authenticates each of its connections.
type credentials struct {
	mu        sync.Mutex    // guards following; never held across a request
	kept      []credential  // in the order in which they were added; a later one may replace an earlier one
	clock     int           // how many additions there were by [Client.AddAuth], and connections
	presented int           // the time at which the latest connection took its credentials
	refused   int           // that of presented when a server refused the latest connection
	refusal   chan struct{} // closed and replaced at each refusal
}

// keep makes every later connection present c. It returns the number of the addition, and presented.
func (cs *credentials) keep(c credential) (addition, presented int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.clock++
	c.addition = cs.clock
	cs.kept = append(cs.kept, c)
	return c.addition, cs.presented
}

// drop undoes an addition; 0 is none.
func (cs *credentials) drop(addition int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.kept = slices.DeleteFunc(cs.kept, func(c credential) bool { return c.addition == addition && addition > 0 })
}

// commit forgets what an addition that will not be undone has replaced.
func (cs *credentials) commit(addition int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	i := slices.IndexFunc(cs.kept, func(c credential) bool { return c.addition == addition && addition > 0 })
	if i >= 0 {
		cs.kept = append(slices.DeleteFunc(slices.Clone(cs.kept[:i]), cs.kept[i].replaces), cs.kept[i:]...)
	}
}

// present returns the credentials that a new connection of the client's session presents.
func (cs *credentials) present() []wire.Credential {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.clock++
	cs.presented = cs.clock
	return presented(cs.kept)
}

// refuse records that a server has refused the latest connection.
func (cs *credentials) refuse() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.refused = cs.presented
	close(cs.refusal)
	cs.refusal = make(chan struct{})
}

// times returns the times of the latest connection and of the latest that was refused, which have presented
// the additions before. The channel is closed at the next refusal.
func (cs *credentials) times() (presented, refused int, refusal <-chan struct{}) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.presented, cs.refused, cs.refusal
}

// all returns the credentials that are kept.
func (cs *credentials) all() []wire.Credential {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return presented(cs.kept)
}

// presented returns the credentials that no later one replaces.
func presented(list []credential) []wire.Credential {
	all := make([]wire.Credential, 0, len(list))
	for i, c := range list {
		if !slices.ContainsFunc(list[i+1:], func(later credential) bool { return later.replaces(c) }) {
			all = append(all, wire.Credential{Scheme: c.scheme, Secret: c.secret})
		}
	}
	return all
}

// replaces reports whether c, which was added later, replaces old: both have one scheme, and the user is the
// same or unknown. Only the scheme digest shows the user.
func (c credential) replaces(old credential) bool {
	return c.addition > 0 && c.scheme == old.scheme && (c.scheme != "digest" || bytes.Equal(c.user(), old.user()))
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
// If a server refuses the credential, the error wraps [ErrAuthFailed] and names the scheme, and the client
// keeps its earlier credentials. The server closes the connection after a refusal; the session continues.
// The same holds if the next connection presents the credential and is refused, be it for another one; the
// client is AuthFailed until a connection is accepted. Other errors: [ErrTooLarge], before anything is
// sent, [ErrClosed], and a fault as of [WithAuth]. No error shows the credential.
func (c *Client) AddAuth(ctx context.Context, scheme string, secret []byte) error {
	usercall.Require("ctx", ctx != nil)
	return c.callError(ctx, "add auth", "", c.core.addAuth(ctx, credential{scheme: scheme, secret: append([]byte(nil), secret...)}))
}

func (c *core) addAuth(ctx context.Context, added credential) error {
	if err := c.checkCredential(added); err != nil {
		return err
	}
	a := &addition{core: c, added: added}
	defer func() { c.credentials.commit(a.number) }()
	for {
		presented, refused, refusal := c.credentials.times() // before the state: a connection presents, then serves
		c.mu.Lock()
		state, s, changed := c.state, c.session, c.changed
		c.mu.Unlock()
		if err := a.ended(ctx, refused); err != nil {
			return err
		}
		accepted := false
		if state == Connected && s.Serves() {
			if a.reached(presented) {
				return nil
			}
			var err error
			if accepted, err = a.present(ctx, s); err != nil {
				return err
			}
		}
		switch missed := a.keep(presented); {
		case accepted && !missed:
			return nil
		case accepted:
			continue
		}
		select {
		case <-changed:
		case <-refusal:
		case <-ctx.Done():
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

func (c *core) checkCredential(added credential) error {
	if err := added.fault(); err != nil {
		return err
	}
	return c.checkSize(added.size())
}

// fault returns what no server can make use of, without the secret.
func (c credential) fault() error {
	user, password, _ := bytes.Cut(c.secret, []byte(":"))
	switch {
	case c.scheme == "":
		return errors.New("scheme must not be empty")
	case c.scheme == "digest" && (len(user) == 0 || len(password) == 0):
		return errors.New("credential of digest: must be user:password, with a password")
	}
	return nil
}

// An addition is a call of AddAuth, on one goroutine.
type addition struct {
	*core
	added  credential
	number int // once later connections present the credential
}

// reached reports whether the connection that came at that time was to present the credential.
func (a *addition) reached(at int) bool { return a.number > 0 && at >= a.number }

// ended returns why the call ends without a connection that has accepted the credential: a later one was refused,
// or ctx has ended.
func (a *addition) ended(ctx context.Context, refused int) error {
	switch {
	case a.reached(refused):
		reason := a.refusal()
		a.credentials.drop(a.number)
		return refusedScheme(a.added.scheme, reason)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), a.notConnected())
	}
	return nil
}

// present presents the credential on the present connection. It returns an error if the server refuses it. If there
// is no reply, the state follows, and the next connection.
func (a *addition) present(ctx context.Context, s *session.Session) (accepted bool, err error) {
	good, err := s.Present(ctx, a.added.scheme, a.added.secret)
	if err == nil && !good {
		a.credentials.drop(a.number)
		return false, refusedScheme(a.added.scheme, ErrAuthFailed)
	}
	return err == nil, nil
}

// keep makes later connections present the credential, and reports whether one has come since that many presented
// theirs, without it.
func (a *addition) keep(presented int) (missed bool) {
	if a.number > 0 {
		return false
	}
	var latest int
	a.number, latest = a.credentials.keep(a.added)
	a.renewRefused()
	return latest != presented
}

// refusedScheme returns the error of a credential of the scheme.
func refusedScheme(scheme string, reason error) error {
	return fmt.Errorf("credential of the scheme %q: %w", errtype.Shortened(scheme), reason)
}

// renewRefused makes the client connect again at once, if a server has refused it.
func (c *core) renewRefused() {
	c.mu.Lock()
	state, s := c.state, c.running
	c.mu.Unlock()
	if state == AuthFailed {
		s.Renew()
	}
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
		cfg.require("SASL mechanism", mechanism != nil)
		if m, ok := mechanism.(digestMechanism); ok && m.user == "" {
			cfg.faults = append(cfg.faults, errors.New("framework: SASL user: must not be empty"))
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
