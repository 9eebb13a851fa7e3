package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/docent-go/docent/internal/freeport"
)

// startAttempts is how many draws of ports a start may use up. One is enough
// unless another process binds the same one of 22000 within the same second.
const startAttempts = 5

// Start starts a standalone server and returns when it serves clients. The caller must
// [Server.Close] it. If ctx ends first nothing is left behind.
//
// The error is [ErrMissing] if there is no ZooKeeper or no Java, names every option at fault, or
// shows the end of the server's log.
func Start(ctx context.Context, opts ...Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	in, err := locate()
	if err != nil {
		return nil, err
	}
	return retryTaken(func() (*Server, error) { return startAlone(ctx, in, cfg) })
}

// retryTaken repeats a start that drew a port which another process then bound.
func retryTaken[T any](start func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		v, err := start()
		if err == nil || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return v, err
		}
	}
}

func startAlone(ctx context.Context, in install, cfg config) (*Server, error) {
	ports, err := freeport.Draw(1)
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	return startAt(ctx, ports[0], in, cfg)
}

func startAt(ctx context.Context, port int, in install, cfg config) (*Server, error) {
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	s := newServer(layout{dir: dir, root: dir, place: place{host: localhost, port: port}}, in, cfg)
	if err := s.layout.write(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("zktest: %w", err), s.Close())
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
