package framework

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/proto"
)

// AnyVersion matches every version of a znode, or of the ensemble's configuration. A znode's own version overflows
// after 2147483647, and reaches this number after 4294967295 writes. A write that gives that version is not
// conditional.
const AnyVersion = -1

// Set replaces the znode's data and returns the new Stat. The znode's version must equal the given
// version; [AnyVersion] matches every version.
//
// Set is retried by the client's policy until ctx ends. If the reply to an attempt was lost, Set
// repeats the write only if the first attempt certainly had no effect: the znode is as it was
// before. Otherwise the error wraps [ErrUnknownOutcome], because the write may have been applied, and
// another client may have written since. It also wraps [ErrBadVersion] or [ErrNoNode] if that is what
// Set found. [Idempotent] resolves it if the znode holds the data.
//
// Other errors: [ErrNoNode], [ErrNoAuth], [ErrTooLarge], and the errors of every operation. If ctx
// ends first, the error wraps ctx's error, and ErrUnknownOutcome if a request was sent.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32, opts ...SetOption) (Stat, error) {
	var cfg setConfig
	if err := applyAll(opts, func(o SetOption) { o.applySet(&cfg) }); err != nil {
		return Stat{}, c.opError("set", path, err)
	}
	st, err := c.set(ctx, path, data, version, cfg.tolerated()...)
	if cfg.idempotent && (errors.Is(err, ErrBadVersion) || errors.Is(err, zkerr.ErrEarlierAttempt)) {
		st, err = c.checkSet(ctx, path, data, version, err)
	}
	return st, c.callError(ctx, "set", path, err)
}

func (c *Client) set(ctx context.Context, path string, data []byte, version int32, tolerated ...error) (Stat, error) {
	packed := c.core.cfg.pack(data)
	return c.write(ctx, change{
		op: "set", path: path, version: version, size: setSize + len(packed), tolerates: tolerated,
		to: func(full string, version int32) requests.Request[proto.Stat] {
			return requests.Set(full, packed, version)
		},
		versionOf: func(st proto.Stat) int32 { return st.Version },
	})
}

// checkSet returns nil in place of err if the znode is as the Set would have left it.
func (c *Client) checkSet(ctx context.Context, path string, data []byte, version int32, err error) (Stat, error) {
	got, st, readErr := c.get(ctx, path)
	switch {
	case readErr != nil:
		return Stat{}, errors.Join(err, c.opError("get", path, readErr))
	case (version == AnyVersion || st.Version == version+1) && bytes.Equal(got, data):
		return st, nil
	}
	return Stat{}, err
}

// SetACL replaces the znode's ACL. The ACL's version (Stat.Aversion) must equal the given version;
// [AnyVersion] matches every version. SetACL is retried as [Client.Set] is, with the same errors.
// With AnyVersion it is not repeated after a lost reply, because a Stat does not
// show when the ACL was set.
func (c *Client) SetACL(ctx context.Context, path string, acl []acl.Entry, version int32) (Stat, error) {
	if err := validateACL("ACL", acl); err != nil {
		return Stat{}, c.opError("set ACL of", path, err)
	}
	st, err := c.write(ctx, change{
		op: "set ACL of", path: path, version: version, size: setSize + aclSize(acl), once: version == AnyVersion,
		to: func(full string, version int32) requests.Request[proto.Stat] {
			return requests.SetACL(full, acl, version)
		},
		versionOf: func(st proto.Stat) int32 { return st.Aversion },
	})
	return st, c.callError(ctx, "set ACL of", path, explained(err, 0, "", acl))
}

// A change is a write to a znode that depends on a version.
type change struct {
	op, path  string
	version   int32
	size      int     // size of the request without its path, in bytes
	once      bool    // see request
	tolerates []error // see request
	to        func(full string, version int32) requests.Request[proto.Stat]
	versionOf func(st proto.Stat) int32 // which version of a Stat it depends on
}

func (c *Client) write(ctx context.Context, ch change) (Stat, error) {
	full := c.fullPath(ch.path)
	if err := errors.Join(ValidatePath(ch.path), c.core.checkSize(ch.size+len(full))); err != nil {
		return Stat{}, err
	}
	var d earlierAttempts
	rq := request{op: ch.op, path: full, session: c.session, once: ch.once, tolerates: ch.tolerates}
	return do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) (Stat, error) {
		st, err := ch.attempt(ctx, s, full, &d)
		return st, d.note(err)
	})
}

// attempt makes one attempt. A repetition is conditional, whatever version was given: it writes only
// the znode that did not show an earlier attempt.
func (ch change) attempt(ctx context.Context, s *session.Session, full string, d *earlierAttempts) (Stat, error) {
	version := ch.version
	err := d.checkNoEffect(ctx, s, full, func(found proto.Node) error {
		if err := d.isFormer(found); err != nil {
			return err
		}
		switch present := ch.versionOf(found.Stat); {
		case ch.version == AnyVersion && found.Stat.Mzxid > d.before:
			return errWrittenSince
		case ch.version == AnyVersion:
			version = present
		case ch.version != present:
			return maybeEarlier(ErrBadVersion)
		}
		return nil
	})
	if err != nil {
		return Stat{}, err
	}
	st, err := session.Call(ctx, s, ch.to(full, version))
	if version != ch.version && errors.Is(err, ErrBadVersion) {
		err = errWrittenSince
	}
	if err != nil {
		return Stat{}, err
	}
	return statOf(st), nil
}

// CreateOrSet replaces the znode's data, whatever its version, or creates the znode if there is
// none, and returns the new Stat. It takes the options of Create that keep the name and the number
// of znodes: not [Sequential], [Protected], [Idempotent] or [WhenOver]. It is retried, and fails, as
// [Client.Set] and [Client.Create] are; an error that wraps [ErrUnknownOutcome] ends it. If other
// clients keep deleting and creating the znode, it continues until ctx ends.
func (c *Client) CreateOrSet(ctx context.Context, path string, data []byte, opts ...CreateOption) (Stat, error) {
	var cfg createConfig
	faults := applyAll(opts, func(o CreateOption) { o.applyCreate(&cfg) })
	if cfg.has(withSequential | withProtected | withIdempotent | withWhenOver) {
		faults = errors.Join(faults, errors.New("options: must not be Sequential, Protected, Idempotent or WhenOver"))
	}
	if faults != nil {
		return Stat{}, c.opError("create or set", path, faults)
	}
	for rounds := pace.Rounds(); ; {
		st, err := c.set(ctx, path, data, AnyVersion, ErrNoNode)
		if !errors.Is(err, ErrNoNode) || errors.Is(err, ErrUnknownOutcome) {
			return st, c.callError(ctx, "set", path, err)
		}
		_, err = c.create(ctx, path, data, append(slices.Clip(opts), StatTo(&st)))
		if !errors.Is(err, ErrNodeExists) || errors.Is(err, ErrUnknownOutcome) {
			return st, c.callError(ctx, "create", path, err)
		}
		if err := rounds.Wait(ctx, 1); err != nil {
			return Stat{}, c.callError(ctx, "create", path, err)
		}
	}
}

// A SetOption says how [Client.Set] sets.
type SetOption interface{ applySet(*setConfig) }

type setConfig struct{ idempotent bool }

// tolerated returns the error that Set itself resolves.
func (cfg setConfig) tolerated() []error {
	if cfg.idempotent {
		return []error{ErrBadVersion}
	}
	return nil
}
