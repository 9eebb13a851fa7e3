package wire_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
)

// A blockedClose is a socket whose Close blocks until release is closed.
type blockedClose struct {
	net.Conn
	release chan struct{}
}

func (s blockedClose) Close() error {
	<-s.release
	return s.Conn.Close()
}

// A socket's Close that blocks keeps neither the reader nor the events going.
func TestReadEndsThoughTheSocketsCloseBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := 0
		w := wire.New(wire.Config{
			Timeout:   timeout,
			MarginFor: func(time.Duration) time.Duration { return margin },
			MaxReply:  maxReply,
			OnEvent:   func(int32, string) { events++ },
		})
		p := &peer{t: t, wire: w}
		release := make(chan struct{})
		wrap := func(c net.Conn) net.Conn { return blockedClose{c, release} }
		must.OK(t, p.connectIn(withMinute(t), wire.Identification{}, wrap, greet))
		b := make([]byte, 100)
		must.Get(p.facade.Read(b))(t)
		start := time.Now()
		w.CloseConn(errTest)
		go p.server.Write(framed(words(-1, 0, 0, 0, 3, 3, "/a"))) // ends with the pipe
		_, err := p.facade.Read(b)
		if took := time.Since(start); err == nil || took > 0 || events > 0 {
			t.Errorf("the end came after %v, with error %v and %d events", took, err, events)
		}
		close(release)
	})
}
