package framework

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// syncOp is the only operation in this file that needs a leader.
const syncOp = "sync"

// read does one kind of read. It is retried, because a second read has no effect.
func read[T any](
	ctx context.Context, c *Client, op, path string, to func(full string) requests.Request[T],
) (T, error) {
	full, err := c.readPath(path)
	if err != nil {
		var zero T
		return zero, err
	}
	rq := request{op: op, path: full, session: c.session, reads: op != syncOp}
	return do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) (T, error) {
		rq := to(full)
		rq.Class = wire.Apart
		return session.Call(ctx, s, rq)
	})
}

// readPath returns the ensemble's path for a path that is read, or all faults of it.
func (c *Client) readPath(path string) (full string, err error) {
	full = c.fullPath(path)
	return full, errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full)))
}

// Get returns the znode's data and Stat. It is retried by the client's policy until ctx ends.
// Errors: [ErrNoNode], [ErrNoAuth], [ErrNotGzip] (with [WithCompression]), and the errors of every
// operation, which the package's section Errors lists.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	data, st, err := c.get(ctx, path)
	return data, st, c.callError(ctx, "get", path, err)
}

func (c *Client) get(ctx context.Context, path string) ([]byte, Stat, error) {
	found, err := read(ctx, c, "get", path, requests.Get)
	if err != nil {
		return nil, Stat{}, err
	}
	c.core.dirsRead.add(c.fullPath(path), len(found.Data))
	data, err := c.core.cfg.unpack(found.Data)
	return data, statOf(found.Stat), err
}

// Exists reports whether the znode exists, and its Stat if it does. It is retried by the client's
// policy until ctx ends. ok is false with every error.
func (c *Client) Exists(ctx context.Context, path string) (st Stat, ok bool, err error) {
	found, err := read(ctx, c, "exists", path, requests.Exists)
	if errors.Is(err, ErrNoNode) {
		return Stat{}, false, nil
	}
	return statOf(found.Stat), found.Exists, c.callError(ctx, "exists", path, err)
}

// Children returns the names of the znode's children, in no order, and the Stat of the znode
// itself. It is retried by the client's policy until ctx ends. Errors: [ErrNoNode], [ErrNoAuth],
// and the errors of every operation.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	found, err := read(ctx, c, "children", path, requests.Children)
	return found.Children, statOf(found.Stat), c.callError(ctx, "children", path, err)
}

// Sync makes the server that the client is connected to catch up with the leader. If a read of this
// client begins after Sync returned, it sees every change that was made before the call of Sync.
// Sync is retried by the client's policy until ctx ends.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := read(ctx, c, syncOp, path, requests.Sync)
	return c.callError(ctx, syncOp, path, err)
}

// ACL returns the znode's ACL and Stat. It is retried by the client's policy until ctx ends.
// Errors: [ErrNoNode], [ErrNoAuth], and the errors of every operation.
func (c *Client) ACL(ctx context.Context, path string) ([]acl.Entry, Stat, error) {
	found, err := read(ctx, c, "get ACL of", path, requests.GetACL)
	return found.ACL, statOf(found.Stat), c.callError(ctx, "get ACL of", path, err)
}

// A Read is the data and Stat that [Client.GetEach] read of one znode.
type Read struct {
	Data []byte
	Stat Stat
}

// GetEach reads the data and Stat of each of the znodes, as [Client.Get] does. One request has as many of them, up to 64,
// as have about 512 KiB together by what was read before in their directories, and lately. If there are more than five,
// one znode of each directory that was not read yet is read before its others. GetEach returns a Read or an error for each
// path, in their order; an outage fails all of them. It is retried as a whole by the client's policy until ctx ends. If a
// path is invalid, nothing is read.
func (c *Client) GetEach(ctx context.Context, paths ...string) ([]Read, []error) {
	reads, faults := make([]Read, len(paths)), make([]error, len(paths))
	found := c.readEach(ctx, "get", proto.OpGetData, paths, faults)
	for i := range found {
		if faults[i] == nil {
			reads[i].Stat = statOf(found[i].node.Stat)
			reads[i].Data, faults[i] = c.core.cfg.unpack(found[i].node.Data)
		}
	}
	return reads, c.wrapEach(ctx, "get", paths, faults)
}

// ChildrenEach lists the children of each of the znodes, as [Client.Children] does, within the time
// of one listing. It returns the names, in no order, and the Stat of the znode itself, or an error for
// each path, in the order of paths. Each is a request of its own, because only then a server replies
// with a Stat. Retries, ctx and outages are as with [Client.GetEach].
func (c *Client) ChildrenEach(ctx context.Context, paths ...string) ([][]string, []Stat, []error) {
	names, stats, faults := make([][]string, len(paths)), make([]Stat, len(paths)), make([]error, len(paths))
	for i, found := range c.readEach(ctx, "children", proto.OpGetChildren2, paths, faults) {
		names[i], stats[i] = found.node.Children, statOf(found.node.Stat)
	}
	return names, stats, c.wrapEach(ctx, "children", paths, faults)
}

// readEach does one kind of read for each path and sets faults. It returns nothing if no request
// was sent, or if an outage failed all of them.
func (c *Client) readEach(ctx context.Context, op string, opcode proto.Opcode, paths []string, faults []error) []outcomeOfRead {
	usercall.Require("ctx", ctx != nil)
	full := make([]string, len(paths))
	for i, path := range paths {
		full[i], faults[i] = c.readPath(path)
	}
	if err := errors.Join(faults...); err != nil || len(paths) == 0 {
		return nil
	}
	rq := request{op: op, path: full[0], session: c.session, reads: true, batch: len(paths)}
	found, err := do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) ([]outcomeOfRead, error) {
		return c.core.readAll(ctx, s, opcode, full)
	})
	for i := range paths {
		if faults[i] = err; err == nil {
			faults[i] = found[i].err
		}
	}
	return found
}

// A Stat is a znode's metadata.
type Stat struct {
	Czxid          int64     // the transaction that created the znode; ever greater
	Mzxid          int64     // the transaction that last changed its data
	Pzxid          int64     // the transaction that last added or removed a child
	Ctime          time.Time // creation, by the server's clock
	Mtime          time.Time // last change of the data, by the server's clock
	Version        int32     // number of changes of the data
	Cversion       int32     // number of changes of the children
	Aversion       int32     // number of changes of the ACL
	EphemeralOwner int64     // the session that an ephemeral znode belongs to, else 0
	DataLength     int32     // in bytes
	NumChildren    int32
}

// statOf returns the Stat, which is zero if st is.
func statOf(st proto.Stat) Stat {
	if st == (proto.Stat{}) {
		return Stat{}
	}
	return Stat{
		Czxid: st.Czxid, Mzxid: st.Mzxid, Pzxid: st.Pzxid,
		Ctime: time.UnixMilli(st.Ctime), Mtime: time.UnixMilli(st.Mtime),
		Version: st.Version, Cversion: st.Cversion, Aversion: st.Aversion,
		EphemeralOwner: st.EphemeralOwner, DataLength: st.DataLength, NumChildren: st.NumChildren,
	}
}

// emptyGzip is what Curator (GzipCompressionProvider) writes for empty data in Java 16 and later.
// Go's writer would end it with another, equivalent block.
const emptyGzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// pack returns data as the client writes it: never null, which Curator's recipes can't read.
func (cfg *config) pack(data []byte) []byte {
	switch {
	case !cfg.compression && data == nil:
		return []byte{}
	case !cfg.compression:
		return data
	case len(data) == 0:
		return []byte(emptyGzip)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // a buffer accepts everything
	_ = w.Close()
	return packed.Bytes()
}

// unpack returns data as it was before pack. If data is empty, unpack returns it unchanged: parents
// that were created as containers have no data. The result has a maximum size, so that a few bytes
// can't use up all memory.
func (cfg *config) unpack(data []byte) ([]byte, error) {
	if !cfg.compression || len(data) == 0 {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrNotGzip, len(data), err)
	}
	limit := int64(cfg.maxReply) * maxExpansion
	unpacked, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrNotGzip, len(data), err)
	case int64(len(unpacked)) > limit:
		return nil, fmt.Errorf("%w: it expands to more than %d bytes", ErrTooLarge, limit)
	}
	return unpacked, nil
}

// sameData reports whether two znodes' data are the same once they are unpacked. Equal data has many
// compressed forms: Java's gzip makes another one than Go's.
func (cfg *config) sameData(a, b []byte) bool {
	if bytes.Equal(a, b) || !cfg.compression {
		return bytes.Equal(a, b)
	}
	unpackedA, errA := cfg.unpack(a)
	unpackedB, errB := cfg.unpack(b)
	return errA == nil && errB == nil && bytes.Equal(unpackedA, unpackedB)
}

// maxExpansion is how many times the size of the longest reply unpacked data may have.
const maxExpansion = 16
