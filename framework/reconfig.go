package framework

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// AnyConfig is the version for which [Client.Reconfig] changes any configuration.
const AnyConfig int64 = -1

// Config returns the ensemble's dynamic configuration, as the leader had it when the call began or
// later. Chroot and namespace do not apply to it. It is retried by the client's policy until ctx
// ends.
//
// Errors:
//
//   - [ErrNoNode] from servers older than ZooKeeper 3.5;
//   - [ErrNoAuth] if an operator has restricted it;
//   - [ErrServer] if it cannot be parsed;
//   - the errors of every operation.
func (c *Client) Config(ctx context.Context) (Config, error) {
	config, err := do(ctx, c.core, request{op: "config", path: configPath, session: c.session, repeat: repeatable}, func(ctx context.Context, s *session.Session) (Config, error) {
		found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) {
			if err := w.Sync(configPath); err != nil {
				return proto.Node{}, err
			}
			return w.Get(configPath)
		})
		if err != nil {
			return Config{}, err
		}
		return readConfig(found.Data)
	})
	return config, callError(ctx, "config", configPath, err)
}

func readConfig(data []byte) (Config, error) {
	config, err := parseEnsembleConfig(string(data))
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrServer, err)
	}
	return config, nil
}

// A ConfigChange is a change of an ensemble's servers: either Join and Leave, or Members.
type ConfigChange struct {
	// Join are servers to add, each as "server.5=host:2888:3888:participant;2181". If the id is a
	// member's, that member is changed.
	Join []string
	// Leave are the ids of servers to remove.
	Leave []int64
	// Members are all servers of the new configuration, in the form of Join. It excludes Join and
	// Leave.
	Members []string
}

func (ch ConfigChange) validate() error {
	switch incremental := len(ch.Join)+len(ch.Leave) > 0; {
	case incremental && len(ch.Members) > 0:
		return errors.New("change: must not have Members beside Join or Leave")
	case !incremental && len(ch.Members) == 0:
		return errors.New("change: must have Join, Leave or Members")
	}
	for _, server := range append(append([]string(nil), ch.Join...), ch.Members...) {
		id, value, _ := strings.Cut(server, "=")
		if _, err := parseMember(strings.TrimPrefix(id, "server."), value); err != nil || strings.ContainsAny(server, ",\n") {
			return fmt.Errorf("change: server %q: must be one server.<id>=<host>:<port>:<port>[:<role>];[<host>:]<port>", server)
		}
	}
	return nil
}

// body returns the request's body.
func (ch ConfigChange) body(version int64) []byte {
	leave := make([]string, len(ch.Leave))
	for i, id := range ch.Leave {
		leave[i] = strconv.FormatInt(id, 10)
	}
	var b []byte
	for _, list := range [][]string{ch.Join, leave, ch.Members} {
		if len(list) == 0 {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1) // null, as a string
			continue
		}
		b = proto.AppendString(b, strings.Join(list, ","))
	}
	return binary.BigEndian.AppendUint64(b, uint64(version))
}

// Reconfig changes the ensemble's dynamic configuration and returns the new configuration, once a
// quorum of both the old and the new servers has committed it. The present version must equal the
// given version; [AnyConfig] matches every version.
//
// Reconfig is not repeated once it may have had an effect. If the connection breaks or ctx ends
// then, the error wraps [ErrUnknownOutcome], and [Client.Config] returns which configuration is
// valid. If the change removes the leader, the leader steps down, which breaks connections.
//
// The servers must have reconfigEnabled=true ([ErrReconfigDisabled]), and the client a credential
// with the right to write the configuration ([ErrNoAuth]). Other errors:
//
//   - [ErrBadVersion];
//   - [ErrReconfigInProgress];
//   - [ErrNoQuorum] if too few of the new servers are up to date;
//   - [ErrBadArguments] if the ensemble refuses the change, such as an address that is used twice;
//   - [ErrUnsupported] from a standalone server;
//   - the errors of every operation.
func (c *Client) Reconfig(ctx context.Context, change ConfigChange, version int64) (Config, error) {
	usercall.Require("ctx", ctx != nil)
	body := change.body(version)
	err := errors.Join(change.validate(), c.core.checkSize(headSize+len(body)))
	if version < AnyConfig {
		err = errors.Join(err, fmt.Errorf("version %d: must be at least 0, or AnyConfig (-1)", version))
	}
	if err != nil {
		return Config{}, opError("reconfig", configPath, err)
	}
	config, err := do(ctx, c.core, request{op: "reconfig", path: configPath, session: c.session, repeat: once}, func(ctx context.Context, s *session.Session) (Config, error) {
		answer, err := ask(ctx, s, proto.OpReconfig, body)
		if err != nil {
			return Config{}, err
		}
		d := proto.NewDecoder(answer)
		text := d.Text()
		if d.Err() != nil {
			return Config{}, errMalformed
		}
		return readConfig(text)
	})
	return config, callError(ctx, "reconfig", configPath, err)
}
