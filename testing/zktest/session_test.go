package zktest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// An owner that is not kept from it reconnects as fast as it can, and may win more than once.
func TestKilledSessionIsGone(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	for _, held := range []bool{true, false} {
		t.Run(fmt.Sprintf("owner held back %v", held), func(t *testing.T) {
			t.Parallel()
			tap, path := new(tap), fmt.Sprintf("/killed-%v", held)
			conn := connectBy(t, server, soon, tap.dial)
			create(t, conn, path, zk.FlagEphemeral)
			watcher := connect(t, server)
			id, password := tap.session()
			if id != conn.SessionID() {
				t.Fatalf("session 0x%x seen on the wire; the client says 0x%x", id, conn.SessionID())
			}
			if got := ephemerals(t, server)[id]; !slices.Equal(got, []string{path}) {
				t.Fatalf("ephemeral nodes of the session = %q; want %s", got, path)
			}

			tap.set(held)
			must.OK(t, zktest.KillSession(t.Context(), server.Addr(), id, password))
			if ok, _, err := watcher.Exists(path); ok || err != nil {
				t.Errorf("ephemeral node of a killed session: %v, %v; want it gone", ok, err)
			}
			if got, ok := ephemerals(t, server)[id]; ok {
				t.Errorf("ephemeral nodes of a killed session = %q; want none", got)
			}
			tap.set(false)
			zktest.Eventually(t, soon, "the owner has a new session", func() bool {
				return conn.State() == zk.StateHasSession && conn.SessionID() != id
			})
			if err := zktest.KillSession(t.Context(), server.Addr(), id, password); !errors.Is(err, zktest.ErrNoSession) {
				t.Errorf("second KillSession() = %v; want ErrNoSession", err)
			}
		})
	}
}

func TestKillSessionRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	tap := new(tap)
	conn := connectBy(t, server, soon, tap.dial)
	id, password := tap.session()
	wrong := slices.Clone(password)
	wrong[0]++
	if err := zktest.KillSession(t.Context(), server.Addr(), id, wrong); !errors.Is(err, zktest.ErrNoSession) {
		t.Errorf("with a wrong password = %v; want ErrNoSession", err)
	}
	zktest.Eventually(t, soon, "the owner is back with its session", func() bool {
		_, _, err := conn.Exists("/")
		return err == nil && conn.SessionID() == id
	})
	if err := zktest.KillSession(t.Context(), server.Addr(), 0, password); err == nil {
		t.Error("session 0: want an error")
	}
	ctx := deadline(t, 100*time.Millisecond)
	if err := zktest.KillSession(ctx, freeport.Addr(t), id, password); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with no server = %v; want the context's error", err)
	}
}

func ephemerals(t testing.TB, server *zktest.Server) map[int64][]string {
	t.Helper()
	return must.Get(server.Ephemerals(t.Context()))(t)
}

// A tap dials for a client, reads its handshakes and can keep it from dialing.
type tap struct {
	mu       sync.Mutex // guards following
	held     bool
	id       int64
	password []byte
}

func (p *tap) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return nil, errors.New("held back")
	}
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &tappedConn{Conn: conn, tap: p}, nil
}

func (p *tap) set(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

func (p *tap) session() (int64, []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id, p.password
}

// A tappedConn reads the server's first frame whole, keeps id and password and
// passes it on.
type tappedConn struct {
	net.Conn
	tap    *tap
	parsed bool
	rest   []byte
}

func (c *tappedConn) Read(b []byte) (int, error) {
	if !c.parsed {
		head := make([]byte, 4+4+4+8+4+16)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		c.parsed, c.rest = true, head
		if id := int64(binary.BigEndian.Uint64(head[12:])); id != 0 {
			c.tap.mu.Lock()
			c.tap.id, c.tap.password = id, slices.Clone(head[24:40])
			c.tap.mu.Unlock()
		}
	}
	if len(c.rest) > 0 {
		n := copy(b, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
