package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// readsTogether is how many reads are sent as one request at most: more would save little.
const readsTogether = 64

// readsSent are reads of one kind that were sent: of znodes' data and Stats, or of the names of their
// children. Several are one request (multiRead), in which each read fails by itself.
type readsSent struct {
	session *session.Session
	limits  limits
	opcode  proto.Opcode // getData, getChildren, or getChildren2, which is always a request of its own
	class   wire.Class
	call    *wire.Call                   // nil if there is one request
	by      time.Time                    // when their caller leaves; zero for never
	each    lengths                      // of the data of one read; the zero value if nothing is known
	single  *session.Pending[proto.Node] // the only read; nil if there are others
	parts   []partSent
}

// limits are the greatest sizes of a request and of the reply to one read, in bytes.
type limits struct{ request, reply int }

func (c *core) limits() limits { return limits{c.cfg.maxRequest, c.cfg.maxReply} }

// An outcomeOfRead is the result of a read, or its fault.
type outcomeOfRead struct {
	node proto.Node
	err  error
}

// A partSent is as many of the reads as one request has.
type partSent struct {
	paths    []string
	together *session.Pending[[]outcomeOfRead] // nil if each is a request of its own
	each     []*session.Pending[proto.Node]
}

// sendReads sends a read of each of the paths. Requests that follow are served after them.
func sendReads(s *session.Session, most limits, opcode proto.Opcode, paths []string) readsSent {
	sent := readsSent{session: s, limits: most, opcode: opcode}
	if len(paths) == 1 {
		sent.single = sent.sendOne(paths[0])
		return sent
	}
	for len(paths) > 0 {
		n := sent.together(paths)
		sent.parts = append(sent.parts, sent.send(paths[:n]))
		paths = paths[n:]
	}
	return sent
}

// partsAhead is how many requests of one call for data are under way at most: of small znodes, so that few
// round trips follow one another. What the replies have decides how many znodes the next ones read, and all at once would
// be sent for what the first znodes had.
const partsAhead = 8

// readAll reads each of the paths, and returns their outcomes, or the error of an outage or of ctx, which fails
// all of them.
func (c *core) readAll(ctx context.Context, s *session.Session, opcode proto.Opcode, paths []string) ([]outcomeOfRead, error) {
	r := readsSent{session: s, limits: c.limits(), opcode: opcode, class: wire.Apart}
	r.by, _ = ctx.Deadline()
	defer func() { r.withdraw() }() // if there is an error
	if opcode == proto.OpGetChildren2 {
		r.parts = append(r.parts, r.sendEach(paths))
		return r.outcomesOrOutage(ctx, r.parts[0])
	}
	plan, all := c.dirsRead.plan(paths), make([]outcomeOfRead, len(paths))
	for answered := 0; answered < len(paths); {
		for c.sendPart(&r, &plan, answered) { // as many as may be under way
		}
		found, err := r.outcomesOrOutage(ctx, r.parts[0])
		if err != nil {
			return nil, err
		}
		c.learn(r.parts[0].paths, found)
		r.parts = r.parts[1:]
		for i, one := range found {
			all[plan.order[answered+i]] = one
		}
		answered += len(found)
	}
	return all, nil
}

// sendPart sends what may be sent next, and reports whether it has; if not, those under way have to be answered first.
func (c *core) sendPart(r *readsSent, plan *readPlan, answered int) bool {
	paths := plan.next(answered)
	if len(paths) == 0 {
		return false
	}
	n, each := c.dirsRead.together(paths[:min(len(paths), readsTogether)])
	if plan.atOnce {
		n, each.most = len(paths), each.mean
	}
	r.each = each
	if plan.atOnce && n > fewTogether {
		r.parts = append(r.parts, r.sendEach(paths))
		plan.sent += n
		return true
	}
	n = r.together(paths[:n])
	ahead := min(partsAhead, r.session.Wire().Ahead(r.opcode, n, wire.Length{Bytes: each.most + besideData, Known: each.known}))
	if n < min(len(paths), readsTogether) && each.most > 2*each.mean { // after its reply, the next one may have far more reads
		ahead = 1
	}
	if len(r.parts) >= ahead {
		return false
	}
	if left := len(plan.paths) - plan.sent; r.call == nil && n < left {
		r.call = &wire.Call{Reads: left}
	}
	r.parts = append(r.parts, r.send(paths[:n]))
	plan.sent += n
	return true
}

// learn records the lengths of data.
func (c *core) learn(paths []string, found []outcomeOfRead) {
	for i, one := range found {
		length := len(one.node.Data)
		if errors.Is(one.err, ErrTooLarge) {
			length = longest
		}
		c.dirsRead.add(paths[i], length)
	}
}

// together returns how many of the first paths have one request.
func (r *readsSent) together(paths []string) (n int) {
	size, most := headSize+multiOpSize, min(len(paths), readsTogether, r.session.Wire().Together(r.opcode, r.expect(1)))
	for ; n < most; n++ {
		size += multiOpSize + readSize - headSize + len(paths[n])
		if n > 0 && size > r.limits.request {
			break
		}
	}
	return n
}

// besideData is what the answer to a read has besides the data, in bytes.
const besideData = proto.OpHeadSize + proto.LengthSize + proto.StatSize

// expect returns how long the answers to so many reads are expected to be together.
func (r *readsSent) expect(reads int) wire.Length {
	return wire.Length{Bytes: reads * (r.each.mean + besideData), Known: r.each.known}
}

func (r *readsSent) send(paths []string) partSent {
	if len(paths) == 1 {
		return r.sendEach(paths)
	}
	rq := requests.Of(proto.OpMultiRead, r.encode(paths), func(d *proto.Decoder) []outcomeOfRead {
		return r.decode(d, len(paths))
	})
	rq.Class, rq.Call, rq.By, rq.Reads, rq.Read = r.class, r.call, r.by, len(paths), r.opcode
	rq.Expect = r.expect(len(paths))
	rq.Limit = math.MaxInt32 - proto.ReplyHeadSize
	if r.limits.reply < rq.Limit/len(paths) {
		rq.Limit = r.limits.reply * len(paths)
	}
	return partSent{paths: paths, together: session.Begin(r.session, rq)}
}

func (r *readsSent) sendEach(paths []string) partSent {
	part := partSent{paths: paths, each: make([]*session.Pending[proto.Node], len(paths))}
	for i, path := range paths {
		part.each[i] = r.sendOne(path)
	}
	return part
}

func (r *readsSent) sendOne(path string) *session.Pending[proto.Node] {
	rq := requests.Children(path)
	if r.opcode == proto.OpGetData {
		rq = requests.Get(path)
	}
	rq.Class, rq.Call, rq.By, rq.Expect, rq.Limit = r.class, r.call, r.by, r.expect(1), r.limits.reply
	return session.Begin(r.session, rq)
}

// withdraw takes back the requests that were not sent yet, and whose outcomes no caller waits for.
func (r *readsSent) withdraw() {
	if r.single != nil {
		r.single.Withdraw()
	}
	for _, part := range r.parts {
		if part.together != nil {
			part.together.Withdraw()
		}
		for _, one := range part.each {
			one.Withdraw()
		}
	}
}

// encode returns the body of a multiRead.
func (r *readsSent) encode(paths []string) []byte {
	e := proto.NewEncoder()
	for _, path := range paths {
		e.OpHead(r.opcode, false, -1)
		e.String(path)
		e.Bool(false) // no watch: a server ignores that here
	}
	e.OpHead(proto.OpError, true, -1)
	return e.Body()
}

// decode takes the results of a multiRead of n reads.
func (r *readsSent) decode(d *proto.Decoder, n int) []outcomeOfRead {
	found := make([]outcomeOfRead, 0, n)
	for d.Err() == nil {
		opcode, done, _ := d.OpHead()
		if done {
			break
		}
		found = append(found, r.result(d, opcode))
	}
	if d.End() == nil && len(found) != n {
		d.Fail()
	}
	return found
}

// result takes the result of one read. The data are copied, so that they do not keep the whole reply.
func (r *readsSent) result(d *proto.Decoder, opcode proto.Opcode) outcomeOfRead {
	before := len(d.Rest())
	node := proto.Node{Exists: true}
	switch {
	case opcode == proto.OpError:
		return outcomeOfRead{err: zkerr.OfCode(proto.Code(d.Int32()))}
	case opcode != r.opcode:
		d.Fail()
	case opcode == proto.OpGetData:
		node.Data = bytes.Clone(d.Bytes())
		node.Stat = d.Stat()
	default:
		node.Children = requests.Names(d)
	}
	if size := before - len(d.Rest()); size > r.limits.reply {
		return outcomeOfRead{err: fmt.Errorf("%w: %d bytes, and %d are allowed for", ErrTooLarge, size, r.limits.reply)}
	}
	return outcomeOfRead{node: node}
}

// wait returns the outcome of each read, or the error of an outage or of ctx, which fails all of them.
func (r *readsSent) wait(ctx context.Context) (all []outcomeOfRead, err error) {
	if r.single != nil {
		node, err := r.single.Wait(ctx)
		return []outcomeOfRead{{node, err}}, outageOf(ctx, err)
	}
	for _, part := range r.parts {
		found, err := r.outcomesOrOutage(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// outcomesOrOutage waits for a part. It returns an error if an outage or the end of ctx has failed one of its
// reads, or if the server, which ends the connection then, does not know such requests.
func (r *readsSent) outcomesOrOutage(ctx context.Context, part partSent) ([]outcomeOfRead, error) {
	found := r.outcomes(ctx, part)
	for _, one := range found {
		if err := outageOf(ctx, one.err); err != nil {
			return nil, err
		}
		if errors.Is(one.err, ErrUnsupported) {
			return nil, one.err
		}
	}
	return found, nil
}

// outageOf returns err if it is an outage or the end of ctx, which no reply preceded.
func outageOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) || Retryable(err) || errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// outcomes waits for a part. If the replies to its reads are too large together, each read of the part
// becomes a request of its own.
func (r *readsSent) outcomes(ctx context.Context, part partSent) []outcomeOfRead {
	if part.together != nil {
		found, err := part.together.Wait(ctx)
		if err == nil {
			return found
		}
		if !errors.Is(err, ErrTooLarge) {
			return slices.Repeat([]outcomeOfRead{{err: err}}, len(part.paths))
		}
		r.each = lengths{} // what was known of them was wrong
		part = r.sendEach(part.paths)
	}
	found := make([]outcomeOfRead, len(part.each))
	for i, one := range part.each {
		found[i].node, found[i].err = one.Wait(ctx)
	}
	return found
}

// names waits for listings and returns the names that each shows. They are nil if there was no reply,
// and empty if the directory does not exist.
func (r *readsSent) names(ctx context.Context) [][]string {
	found, err := r.wait(ctx)
	if err != nil {
		return nil
	}
	names := make([][]string, len(found))
	for i, one := range found {
		if one.err == nil || errors.Is(one.err, ErrNoNode) {
			names[i] = one.node.Children
			if names[i] == nil {
				names[i] = []string{}
			}
		}
	}
	return names
}
