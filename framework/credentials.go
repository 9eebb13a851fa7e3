package framework

import (
	"bytes"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework/internal/tap"
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

// settle ends the trials whose credential was accepted: with nil if the client is connected now,
// else with the reason.
func (cs *credentials) settle(err error) {
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
func (cs *credentials) present() []tap.Credential {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	kept := slices.Clone(cs.kept)
	var all []tap.Credential
	for _, t := range cs.trials {
		if t.accepted {
			continue // the kept credentials include it
		}
		kept = slices.DeleteFunc(kept, t.credential.replaces)
		all = append(all, tap.Credential{
			Scheme: t.credential.scheme, Secret: t.credential.secret,
			Answered: func(accepted bool) { cs.answered(t, accepted) },
		})
	}
	return append(all, presented(kept)...)
}

// all returns the credentials that are kept.
func (cs *credentials) all() []tap.Credential {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return presented(cs.kept)
}

func presented(list []credential) []tap.Credential {
	all := make([]tap.Credential, len(list))
	for i, c := range list {
		all[i] = tap.Credential{Scheme: c.scheme, Secret: c.secret}
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
