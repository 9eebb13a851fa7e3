package zkserver_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestFourLetterWords(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	c := connect(t, srv)
	c.node(t, "/e", 1)
	c.do(t, exists, "/e", true)
	tests := []struct{ word, want string }{
		{"ruok", "imok"},
		{"isro", "rw"},
		{"srvr", "Mode: standalone\nNode count: 5\n"},
		{"mntr", "zk_ephemerals_count\t1\n"},
		{"dump", "\t/e\n"},
		{"wchs", "1 connections watching 1 paths\nTotal watches:1\n"},
		{"cons", "to=10000"},
		{"envi", "zookeeper.version=3.8.0"},
		{"conf", "tickTime=2000\nminSessionTimeout=4000\nmaxSessionTimeout=40000\n"},
	}
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			nc := dial(t, srv, "")
			must.Get(nc.Write([]byte(tt.word)))(t)
			var got bytes.Buffer
			must.Get(got.ReadFrom(nc))(t)
			if !strings.Contains(got.String(), tt.want) {
				t.Errorf("%s answers %q, want %q in it", tt.word, got.String(), tt.want)
			}
		})
	}
}

// go-zookeeper parses the words with patterns of whole lines, as monitoring tools do.
func TestFourLetterWords_as_go_zookeeper_parses_them(t *testing.T) {
	t.Parallel()
	began := time.Now().UnixMilli()
	srv := zkserver.Run(t, zkserver.WithFrontends(3), zkserver.WithLeader(1))
	front := srv.Frontend(1)
	addr := must.Get(front.Listen("127.0.0.1:0"))(t)
	conn, events := must.Get2(zk.Connect([]string{addr}, T, zk.WithLogger(quiet{})))(t)
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	connectTo(t, srv, 1) // by a pipe, which has no address
	if ok := zk.FLWRuok([]string{addr}, T); !ok[0] {
		t.Error("ruok: not ok")
	}
	stats, ok := zk.FLWSrvr([]string{addr}, T)
	if s := stats[0]; !ok || s.Error != nil || s.Mode != zk.ModeLeader || s.Version != "3.8.0-docent-zkserver" ||
		s.Epoch != 1 || int64(s.Counter) != front.Zxid()&0xffffffff || s.NodeCount != 4 || s.Connections < 3 {
		t.Errorf("srvr: %v, %+v", ok, s)
	}
	clients, ok := zk.FLWCons([]string{addr}, T)
	if !ok || clients[0].Error != nil || len(clients[0].Clients) != 2 {
		t.Fatalf("cons: %v, %+v, want both sessions", ok, clients[0])
	}
	// They come in the order of their sessions. go-zookeeper takes the milliseconds of est for seconds.
	mine := clients[0].Clients[0]
	if mine.SessionID != conn.SessionID() || mine.Timeout != int32(T/time.Millisecond) || mine.Established.Unix() < began {
		t.Errorf("cons: %+v, want session %#x", mine, conn.SessionID())
	}
}
