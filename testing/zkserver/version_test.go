package zkserver_test

import (
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkserver"
)

// What differs between versions, seen by a client without READ on a znode.
func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct {
		exists    int32 // the code
		event     bool  // of the znode's deletion
		eventZxid bool
	}{
		"3.6.0":         {exists: 0, event: true},
		"3.8.0":         {exists: 0, event: true},
		"3.8.0+deb12u2": {exists: 0},
		"3.8.4":         {exists: errNoAuth},
		"3.9.0":         {exists: 0, event: true, eventZxid: true},
		"3.9.6":         {exists: errNoAuth},
	} {
		virtualSubtest(t, version, func(t *testing.T, srv *zkserver.Server) {
			writer, reader := connect(t, srv), connect(t, srv)
			writer.do(t, create, "/secret", []byte(nil), []entry{{30, "world", "anyone"}}, 0)
			writer.do(t, create, "/open", []byte(nil), open(), 0)
			reader.do(t, exists, "/open", true)
			if got := reader.call(t, exists, "/secret", true).err; got != want.exists {
				t.Errorf("exists: code %d, want %d", got, want.exists)
			}
			writer.do(t, del, "/secret", -1)
			deleted := writer.call(t, del, "/open", -1)
			var events []reply
			must.Get(reader.send(ping))(t)
			for got := must.Get(reader.receive())(t); got.xid == -1; got = must.Get(reader.receive())(t) {
				events = append(events, got)
			}
			n := 1
			if want.event {
				n++
			}
			if len(events) != n {
				t.Fatalf("%d events, want %d", len(events), n)
			}
			wantZxid := int64(-1)
			if want.eventZxid || version == "3.9.6" {
				wantZxid = deleted.zxid
			}
			if got := events[n-1].zxid; got != wantZxid {
				t.Errorf("the event's zxid is %d, want %d", got, wantZxid)
			}
		}, zkserver.WithVersion(version))
	}
}

func TestWithVersion_refuses_what_it_does_not_know(t *testing.T) {
	t.Parallel()
	for _, opt := range []zkserver.Option{zkserver.WithVersion("3.5.10"), zkserver.WithVersion("newest")} {
		if srv, err := zkserver.Start(opt); err == nil {
			t.Error("started")
			must.OK(t, srv.Close())
		}
	}
}

// reconfigEnabled is false by default, on a standalone server too, and a server replies so before it
// looks at anything else.
func TestReconfigIsDisabled(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		c.fails(t, int32(proto.CodeReconfigDisabled), int32(proto.OpReconfig), "", "1", "", int64(-1))
		c.do(t, ping) // the connection goes on
	})
}
