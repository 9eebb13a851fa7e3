package zkserver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// readOnlySyncTicks is the sync limit of these scenes: the isolated member has no session to
// restart for.
const readOnlySyncTicks = 6

// A member that is cut off from the others serves reads to clients that ask for that, and nothing
// to others. Both ensembles do so.
func TestDifferentialReadOnlyMember(t *testing.T) {
	t.Parallel()
	for _, localSessions := range []bool{true, false} {
		t.Run(fmt.Sprintf("local sessions %v", localSessions), func(t *testing.T) {
			t.Parallel()
			theirs := playReadOnly(t, real{zktest.RunEnsemble(t, members, zktest.WithSyncLimit(readOnlySyncTicks),
				zktest.WithJVMFlags("-Dreadonlymode.enabled=true"),
				zktest.WithSetting("localSessionsEnabled", strconv.FormatBool(localSessions)),
				zktest.WithSetting("localSessionsUpgradingEnabled", strconv.FormatBool(localSessions)))})
			var ours string
			synctest.Test(t, func(t *testing.T) {
				ours = playReadOnly(t, runEmbedded(t, zkserver.WithSyncLimit(readOnlySyncTicks),
					zkserver.WithReadOnlyMode(localSessions)))
			})
			if ours != theirs {
				t.Errorf("zkserver:\n%sZooKeeper:\n%s", ours, theirs)
			}
		})
	}
}

// readOnlyOps are requests to a read-only member.
var readOnlyOps = []struct {
	op     int32
	fields []any
}{
	{create, []any{"/ro", []byte(nil), open(), 0}},
	{create2, []any{"/ro", []byte(nil), open(), 0}},
	{createContainer, []any{"/ro", []byte(nil), open(), 4}},
	{createTTL, []any{"/ro", []byte(nil), open(), 5, int64(1000)}},
	{setData, []any{"/a", []byte("y"), -1}},
	{setACL, []any{"/a", open(), -1}},
	{del, []any{"/a", -1}},
	{multi, []any{[]sub{{check, body("/a", 0)}}}},
	{syncOp, []any{"/"}},
	{getData, []any{"/a", true}},
	{exists, []any{"/none", true}},
	{getChildren, []any{"/a", false}},
	{ping, nil},
	{auth, []any{0, "digest", []byte("ann:pw")}},
	{addWatch, []any{"/a", 1}},
	{removeWatches, []any{"/a", 3}},
	{getEphemerals, []any{"/"}},
}

// playReadOnly cuts a member off and returns what its clients met.
func playReadOnly(t *testing.T, e ensemble) string {
	t.Helper()
	member := (e.leader(t) + 1) % members
	var log strings.Builder
	note := func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
	global := openAt(t, e, member, 20*time.Second, nil)
	global.node(t, "/a", 1)
	e.isolate(t, member)
	global.closed(t)
	zktest.Eventually(t, time.Minute, "the member serves reads", func() bool {
		answer, err := shakeReadOnly(t, e, member, true, nil)
		return err == nil && len(answer.frame) > 0
	})
	rw, err := shakeReadOnly(t, e, member, false, nil)
	note("asked for read-write: %d bytes, refused: %v", len(rw.frame), errors.Is(err, io.EOF))
	kept, err := shakeReadOnly(t, e, member, true, global)
	note("global session: %d bytes, refused: %v", len(kept.frame), errors.Is(err, io.EOF))
	note("isro: %q", fourLetter(t, e, member, "isro"))
	fresh := must.Get(shakeReadOnly(t, e, member, true, nil))(t)
	if len(fresh.frame) != connectLength {
		got := fresh.client
		got.nc.SetReadDeadline(time.Now().Add(time.Second))
		_, err := got.r.ReadByte()
		zxid := binary.BigEndian.Uint64(fresh.frame[4:])
		note("refusal: xid %x, zxid is 0: %v, code %x, closed: %v",
			fresh.frame[:4], zxid == 0, fresh.frame[12:], errors.Is(err, io.EOF))
	} else {
		note("session: %v, timeout %v, read-only %d", fresh.client.session != 0, fresh.client.timeout, fresh.frame[36])
		playReadOnlySession(t, e, member, fresh.client, note)
	}
	e.heal(t, member)
	fresh.client.closed(t)
	zktest.Eventually(t, time.Minute, "the member follows again", func() bool {
		answer, err := shakeReadOnly(t, e, member, false, global)
		return err == nil && len(answer.frame) == connectLength
	})
	note("isro: %q", fourLetter(t, e, member, "isro"))
	back, err := shakeReadOnly(t, e, member, true, nil)
	if err != nil || len(back.frame) != connectLength {
		t.Fatalf("handshake with a member that follows: %x, %v", back.frame, err)
	}
	note("session: %v, read-only %d", back.client.session != 0, back.frame[36])
	return log.String()
}

func playReadOnlySession(t *testing.T, e ensemble, member int, c *client, note func(string, ...any)) {
	t.Helper()
	for _, rq := range readOnlyOps {
		got := c.call(t, rq.op, rq.fields...)
		note("op %d: error %d, zxid is 0: %v, %d bytes", rq.op, got.err, got.zxid == 0, len(got.body))
	}
	again := must.Get(shakeReadOnly(t, e, member, true, c))(t)
	note("the same session again: %v", again.client.session == c.session)
	c.closed(t)
	got := again.client.call(t, closeSession)
	note("end: error %d", got.err)
	again.client.closed(t)
}

// A shaken is an answered handshake.
type shaken struct {
	client *client
	frame  []byte
}

// shakeReadOnly makes a handshake that says whether a read-only server will do.
func shakeReadOnly(t *testing.T, e ensemble, member int, readOnly bool, resumed *client) (shaken, error) {
	t.Helper()
	nc, err := e.dial(member)
	if err != nil {
		return shaken{}, err
	}
	t.Cleanup(func() { nc.Close() })
	must.OK(t, nc.SetDeadline(time.Now().Add(20*time.Second)))
	hello := proto.ConnectRequest{Timeout: 5000, ReadOnly: readOnly}
	if resumed != nil {
		hello.Session, hello.Password = resumed.session, resumed.password
	}
	c := newClient(nc)
	frame, err := c.greet(hello)
	return shaken{c, frame}, eof(err)
}

// eof returns io.EOF for whatever the network makes of a connection that the server closed.
func eof(err error) error {
	if timeout := net.Error(nil); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return io.EOF
}

func fourLetter(t *testing.T, e ensemble, member int, word string) string {
	t.Helper()
	nc := dialAt(t, e, member)
	must.Get(io.WriteString(nc, word))(t)
	answer := must.Get(io.ReadAll(nc))(t)
	return string(answer)
}
