// Package requests has the requests of a client: how each is encoded, and what its reply means. The
// layout is that of zookeeper.jute in Apache ZooKeeper 3.5 and later.
package requests

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// ErrMalformed is returned for a reply that does not follow the protocol.
var ErrMalformed = fmt.Errorf("%w: malformed answer", zkerr.ErrServer)

// A Request is a request whose reply means a T.
type Request[T any] struct {
	Opcode proto.Opcode
	Body   []byte
	Watch  bool                         // it is a read that leaves a watch
	Limit  int                          // the length that the reply's body may have, in bytes; 0 for the client's, or Expect if that is more
	Expect wire.Length                  // of the reply's body
	Reads  int                          // how many reads a multiRead has
	Read   proto.Opcode                 // what they are
	Class  wire.Class                   // what it goes ahead of
	Call   *wire.Call                   // nil if its call has no other request
	By     time.Time                    // when its caller leaves; zero for never
	Decode func(wire.Answer) (T, error) // its errors are package zkerr's
	// Answered is called with the meaning of a reply without an error, even if no caller waits for it, and before a
	// later reply is read; nil for no call. It must not block.
	Answered func(T)
}

// Of returns a request with the body. Its reply, unless it has an error, is decoded by decode.
func Of[T any](opcode proto.Opcode, body []byte, decode func(d *proto.Decoder) T) Request[T] {
	return Request[T]{Opcode: opcode, Body: body, Decode: func(a wire.Answer) (T, error) {
		d, err := open(a)
		if err != nil {
			var zero T
			return zero, err
		}
		v := decode(&d)
		return whole(&d, v)
	}}
}

// open returns a Decoder of the answer's body, and the error of its code.
func open(a wire.Answer) (proto.Decoder, error) {
	return proto.NewDecoder(a.Body), zkerr.OfCode(a.Code)
}

// whole returns v, unless d has found a fault in the body.
func whole[T any](d *proto.Decoder, v T) (T, error) {
	if d.Err() != nil {
		var zero T
		return zero, ErrMalformed
	}
	return v, nil
}

// read is the request of a read, whose watch flag is the last byte.
func read(opcode proto.Opcode, path string, decode func(a wire.Answer) (proto.Node, error)) Request[proto.Node] {
	body := make([]byte, 0, proto.LengthSize+len(path)+1)
	return Request[proto.Node]{Opcode: opcode, Body: append(proto.AppendString(body, path), 0), Decode: decode}
}

// Get reads a znode's data and Stat.
func Get(path string) Request[proto.Node] {
	return read(proto.OpGetData, path, func(a wire.Answer) (proto.Node, error) {
		d, err := open(a)
		if err != nil {
			return proto.Node{}, err
		}
		return whole(&d, proto.Node{Exists: true, Data: d.Bytes(), Stat: d.Stat()})
	})
}

// Exists reads a znode's Stat. The znode need not exist.
func Exists(path string) Request[proto.Node] {
	return read(proto.OpExists, path, func(a wire.Answer) (proto.Node, error) {
		if a.Code == proto.CodeNoNode {
			return proto.Node{}, nil
		}
		d, err := open(a)
		if err != nil {
			return proto.Node{}, err
		}
		return whole(&d, proto.Node{Exists: true, Stat: d.Stat()})
	})
}

// Shared returns the request with a result that several goroutines may have.
func Shared(rq Request[proto.Node]) Request[*proto.Node] {
	return Request[*proto.Node]{Opcode: rq.Opcode, Body: rq.Body, Watch: rq.Watch, By: rq.By, Decode: func(a wire.Answer) (*proto.Node, error) {
		found, err := rq.Decode(a)
		return &found, err
	}}
}

// Children reads the names of a znode's children, and its Stat.
func Children(path string) Request[proto.Node] {
	return read(proto.OpGetChildren2, path, func(a wire.Answer) (proto.Node, error) {
		d, err := open(a)
		if err != nil {
			return proto.Node{}, err
		}
		return whole(&d, proto.Node{Exists: true, Children: Names(&d), Stat: d.Stat()})
	})
}

// Names takes the names of a znode's children. Joined to its parent's path, each has to be a path.
func Names(d *proto.Decoder) []string {
	names := d.Strings()
	if slices.ContainsFunc(names, func(name string) bool { return name == "" || strings.Contains(name, "/") }) {
		d.Fail()
	}
	return names
}

// Created is what the reply to a create has.
type Created struct {
	Path string
	Stat proto.Stat
}

// Create creates a znode. A ttl that is not zero makes the server remove it after that time.
func Create(path string, data []byte, flags int32, list []acl.Entry, ttl time.Duration) Request[Created] {
	e := proto.NewEncoder()
	AppendCreate(e, path, data, flags, list)
	rq := Request[Created]{Opcode: proto.OpCreate2, Decode: created}
	switch {
	case ttl != 0:
		rq.Opcode = proto.OpCreateTTL
		e.Int64(ttl.Milliseconds())
	case flags == proto.FlagContainer:
		rq.Opcode = proto.OpCreateContainer
	}
	rq.Body = e.Body()
	return rq
}

// AppendCreate appends the fields of a create to e.
func AppendCreate(e *proto.Encoder, path string, data []byte, flags int32, list []acl.Entry) {
	e.String(path)
	e.Bytes(data)
	appendACL(e, list)
	e.Int32(flags)
}

func created(a wire.Answer) (Created, error) {
	d, err := open(a)
	if err != nil {
		return Created{}, err
	}
	return whole(&d, Created{Path: d.Path(), Stat: d.Stat()})
}

// Set replaces a znode's data.
func Set(path string, data []byte, version int32) Request[proto.Stat] {
	e := proto.NewEncoder()
	e.String(path)
	e.Bytes(data)
	e.Int32(version)
	return Of(proto.OpSetData, e.Body(), (*proto.Decoder).Stat)
}

// Delete deletes a znode.
func Delete(path string, version int32) Request[struct{}] {
	body := make([]byte, 0, proto.LengthSize+len(path)+4)
	body = binary.BigEndian.AppendUint32(proto.AppendString(body, path), uint32(version))
	return Request[struct{}]{Opcode: proto.OpDelete, Body: body, Class: wire.Release, Decode: nothing}
}

// Sync makes the server catch up with the leader.
func Sync(path string) Request[struct{}] {
	return Request[struct{}]{Opcode: proto.OpSync, Body: proto.AppendString(nil, path), Decode: nothing}
}

func nothing(a wire.Answer) (struct{}, error) { return struct{}{}, zkerr.OfCode(a.Code) }

// A ReadACL is what the reply to GetACL has.
type ReadACL struct {
	ACL  []acl.Entry
	Stat proto.Stat
}

// GetACL reads a znode's access list and Stat.
func GetACL(path string) Request[ReadACL] {
	return Of(proto.OpGetACL, proto.AppendString(nil, path), func(d *proto.Decoder) ReadACL {
		if len(d.Rest()) > 0 && d.Rest()[0]&0x80 != 0 {
			d.Fail() // a null list, which no znode has
		}
		r := ReadACL{ACL: make([]acl.Entry, d.Count(4+2*proto.LengthSize))}
		for i := range r.ACL {
			r.ACL[i] = acl.Entry{Perms: acl.Permission(d.Int32()), Scheme: d.String(), ID: d.String()}
		}
		r.Stat = d.Stat()
		return r
	})
}

// SetACL replaces a znode's access list.
func SetACL(path string, list []acl.Entry, version int32) Request[proto.Stat] {
	e := proto.NewEncoder()
	e.String(path)
	appendACL(e, list)
	e.Int32(version)
	return Of(proto.OpSetACL, e.Body(), (*proto.Decoder).Stat)
}

func appendACL(e *proto.Encoder, list []acl.Entry) {
	e.Int32(int32(len(list)))
	for _, entry := range list {
		e.Int32(int32(entry.Perms))
		e.String(entry.Scheme)
		e.String(entry.ID)
	}
}

// unusedPath is the path of requests that are to change nothing. Their meaning does not depend on
// whether the znode exists.
const unusedPath = "/zookeeper/no-such-znode"

// Prove is answered once a quorum of the ensemble has committed a transaction of the session that
// changes nothing. It needs no permission: the check fails because there is no znode, and a failed
// transaction is committed, too. A sync would prove less, because a deposed leader still replies to
// syncs.
func Prove() Request[struct{}] {
	e := proto.NewEncoder()
	e.OpHead(proto.OpCheck, false, -1)
	e.String(unusedPath)
	e.Int32(0) // version
	e.OpHead(proto.OpError, true, -1)
	return Request[struct{}]{Opcode: proto.OpMulti, Body: e.Body(), Decode: func(a wire.Answer) (struct{}, error) {
		d, err := open(a)
		if err != nil {
			return struct{}{}, err
		}
		if op, _, _ := d.OpHead(); op == proto.OpError {
			err = unlessCommitted(zkerr.OfCode(proto.Code(d.Int32())))
		}
		if d.Err() != nil {
			err = ErrMalformed
		}
		return struct{}{}, err
	}}
}

// Touch is answered by the connected server alone, so it proves nothing.
func Touch() Request[struct{}] {
	return Request[struct{}]{Opcode: proto.OpExists, Body: Exists(unusedPath).Body, Decode: func(a wire.Answer) (struct{}, error) {
		return struct{}{}, unlessCommitted(zkerr.OfCode(a.Code))
	}}
}

// unlessCommitted returns nil if the ensemble's leader can have given that outcome of a check.
func unlessCommitted(outcome error) error {
	if errors.Is(outcome, zkerr.ErrNoNode) || errors.Is(outcome, zkerr.ErrBadVersion) || errors.Is(outcome, zkerr.ErrNoAuth) {
		return nil
	}
	return outcome
}

// Unsupported returns the error of a request that the server has replied to as one that it does not know.
// It wraps zkerr.ErrUnsupported, and says which servers know the operation.
func Unsupported(opcode proto.Opcode, server string) error {
	what := fmt.Sprintf("operation %d", opcode)
	switch opcode {
	case proto.OpCreate2:
		what = "create2, which ZooKeeper has since 3.5"
	case proto.OpCreateContainer:
		what = "containers, which ZooKeeper has since 3.5.1"
	case proto.OpCreateTTL: // the reply also of a server whose configuration does not allow it
		what = "a TTL, which ZooKeeper has since 3.5.3 with extendedTypesEnabled=true"
	case proto.OpReconfig: // the reply also of a standalone server
		what = "reconfig, which ensembles of ZooKeeper have since 3.5"
	case proto.OpRemoveWatches:
		what = "removeWatches, which ZooKeeper has since 3.5"
	case proto.OpAddWatch:
		what = "addWatch, which ZooKeeper has since 3.6"
	case proto.OpMultiRead:
		what = "multiRead, which ZooKeeper has since 3.6"
	case proto.OpGetEphemerals:
		what = "getEphemerals, which ZooKeeper has since 3.6"
	case proto.OpWhoAmI:
		what = "whoAmI, which ZooKeeper has since 3.7"
	}
	return fmt.Errorf("%w %s: %s", zkerr.ErrUnsupported, server, what)
}
