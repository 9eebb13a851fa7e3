package zkserver_test

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestMalformedFrameClosesTheConnection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		frame []byte // with its length
	}{
		{"a negative length", body(-1)},
		{"a length beyond the packet limit", body(zkserver.DefaultPacketLimit + 1)},
		{"a frame without an operation", framed(7)},
		{"a truncated body", framed(7, del, "/x")},
		{"bytes behind the body", framed(7, ping, true)},
		{"a null path", framed(7, getData, -1, true)},
		{"a string longer than the frame", framed(7, getData, 100, true)},
		{"a vector longer than the frame", framed(7, setACL, "/", 1<<30, 0, 0, bare("abc"))},
		{"a vector of negative length", framed(7, setACL, "/", -2, -1)},
		{"a multi that holds a ping", framed(7, multi, ping, false, -1)},
		{"a multi without an end", framed(7, multi)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := zkserver.Run(t)
			c := connect(t, srv)
			go c.nc.Write(tt.frame)
			c.closed(t)
			connect(t, srv).do(t, ping)
		})
	}
}

// What rules see of a request is its path, as soon as that has come, and the operations of a transaction whose
// paths have.
func TestFrameOf(t *testing.T) {
	t.Parallel()
	const deleteContainer = 20
	for _, op := range []int32{
		create, create2, createContainer, createTTL, del, deleteContainer, exists, getData, setData, getACL, setACL, getChildren,
		getChildren2, syncOp, check, checkWatches, removeWatches, addWatch, getEphemerals, countChildren,
	} {
		got, ok := zkserver.FrameOf(5, body(7, op, "/a"))
		want := fault.Frame{Session: 5, Xid: 7, Op: fault.OpOf(op), Path: "/a"}
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("operation %d: got %+v, %v, want %+v", op, got, ok, want)
		}
	}
	parts := []fault.Part{{Op: fault.Check, Path: "/a"}, {Op: fault.Create, Path: "/b"}, {Op: fault.SetData, Path: "/c"}}
	data := []byte("data")
	whole := body(7, multi, []sub{{check, body("/a", -1)}, {create, body("/b", data, open(), 0)}, {setData, body("/c", data, -1)}})
	for n := range len(whole) + 1 {
		got, ok := zkserver.FrameOf(5, whole[:n])
		if ok != (n >= 8) {
			t.Errorf("%d bytes are a request: %v", n, ok)
		}
		var want []fault.Part
		for _, part := range parts {
			if bytes.Contains(whole[:n], []byte(part.Path)) {
				want = append(want, part)
			}
		}
		if !slices.Equal(got.Parts, want) {
			t.Errorf("parts %v of %d bytes, want %v", got.Parts, n, want)
		}
	}
}

// framed returns a frame with its length.
func framed(fields ...any) []byte {
	b := body(fields...)
	return append(body(len(b)), b...)
}

// A frame at the limit is accepted.
func TestPacketLimit(t *testing.T) {
	t.Parallel()
	overhead := len(body(1, create, "/x", []byte{}, open(), 0))
	connect(t, zkserver.Run(t)).do(t, create, "/x", make([]byte, zkserver.DefaultPacketLimit-overhead), open(), 0)
}

// An operation that the server's version lacks is answered as unimplemented, and ends the connection.
func TestUnknownOperationIsRefused(t *testing.T) {
	t.Parallel()
	whatever := []any{"whatever"}
	for op, fields := range map[int32][]any{20: whatever, 99: whatever, -10: whatever, int32(proto.OpWhoAmI): nil} {
		c := connect(t, zkserver.Run(t, zkserver.WithVersion("3.6.4")))
		c.fails(t, errUnimplemented, op, fields...)
		c.closed(t)
	}
}

func TestAccessListsAreEnforced(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	owner, stranger := connect(t, srv), connect(t, srv)
	owner.do(t, auth, 0, "digest", []byte("ann:secret"))
	owner.do(t, create, "/p", []byte("s"), []entry{{31, "auth", ""}}, 0)
	owner.node(t, "/p/c", 0)
	owner.do(t, getData, "/p", false)
	stranger.fails(t, errNoAuth, getData, "/p", false)
	stranger.fails(t, errNoAuth, setData, "/p", []byte(nil), -1)
	stranger.fails(t, errNoAuth, getChildren, "/p", false)
	stranger.fails(t, errNoAuth, create, "/p/d", []byte(nil), open(), 0)
	stranger.fails(t, errNoAuth, del, "/p/c", -1)
	stranger.fails(t, errNoAuth, setACL, "/p", open(), -1)
	stranger.do(t, exists, "/p", false)
	owner.do(t, setACL, "/p", []entry{{31, "auth", ""}, {1, "world", "anyone"}}, -1)
	if got := string(stranger.do(t, getACL, "/p")); !strings.Contains(got, "ann:x") {
		t.Errorf("a stranger is shown %q, want no hash", got)
	}
}

// FuzzDecode: no bytes make the decoder panic, or take memory out of proportion.
func FuzzDecode(f *testing.F) {
	f.Add(body(0, int64(0), 10_000, int64(0), make([]byte, 16), false))
	f.Add(body(1, create, "/x", []byte("data"), open(), 3))
	f.Add(body(1, createTTL, "/x", []byte("data"), open(), 5, int64(1)))
	f.Add(body(1, setACL, "/x", []entry{{1, "ip", "10.0.0.0/8"}}, -1))
	f.Add(body(1, multi, []sub{{create, body("/x", []byte(nil), open(), 4)}, {check, body("/x", 0)}}))
	f.Add(body(1, multiRead, []sub{{getData, body("/x", false)}}))
	f.Add(body(-8, setWatches2, int64(1), []string{"/a"}, []string{}, []string{"/b"}, []string{}, []string{"/c"}))
	f.Add(body(1, getEphemerals, "/"))
	f.Add(body(1, setACL, "/", 1<<30))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = zkserver.DecodeFrame(frame)
		runtime.ReadMemStats(&after)
		// The largest part of a decoded multi takes 250 bytes for the 21 of its
		// shortest operation, and slices double.
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+200*len(frame)); got > most {
			t.Errorf("decoding %d bytes took %d bytes of memory, want %d at most", len(frame), got, most)
		}
	})
}

func TestStartRefusesOptionsOutOfBounds(t *testing.T) {
	t.Parallel()
	_, err := zkserver.Start(zkserver.WithTick(0), zkserver.WithFrontends(101), zkserver.WithPacketLimit(1),
		zkserver.WithReapInterval(-1), zkserver.WithSessionTimeouts(3, 2),
		zkserver.WithLeader(200), zkserver.WithCommitTime(-1), zkserver.WithSyncLimit(0))
	want := strings.Join([]string{
		"zkserver: tick 0s: must be at least 1ms",
		"zkserver: session timeouts 3ns to 2ns: must be at least 1ms and in order",
		"zkserver: packet limit 1: must be at least 1024",
		"zkserver: reap interval -1ns: must be at least 1ms",
		"zkserver: frontends 101: must be 1 to 100",
		"zkserver: leader 200: must be the number of one of 2 or more front ends, there are 101",
		"zkserver: commit time -1ns: must be at least 0",
		"zkserver: sync limit 0: must be at least 1 tick",
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
