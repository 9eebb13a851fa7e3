package page

import (
	"context"
	"encoding/json"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework/zktel"
)

// A revocation names the holder that the page showed. A znode of that name that was created since has
// another fence.
type revocation struct {
	Znode string `json:"znode"`
	Fence string `json:"fence"`
}

// revokeLimit bounds a request to release.
const revokeLimit = 10 * time.Second

// revoke asks a holder to release. It is logged, whatever comes of it.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	var asked revocation
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		http.Error(w, "the request must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, "the request is not a revocation", http.StatusBadRequest)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it would end the request's context
	status, text := s.askToRelease(r, asked)
	s.revoked.add(http.StatusText(status))
	s.cfg.Log.Info("revocation asked for on the page", slog.String("znode", asked.Znode), slog.String("fence", asked.Fence),
		slog.String("remote", r.RemoteAddr), slog.Int("status", status), slog.String("outcome", text))
	if status != http.StatusOK {
		http.Error(w, text, status)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // an error means that the browser has gone
}

// askToRelease asks only a contender that the board has, so no other znode can be named.
func (s *Server) askToRelease(r *http.Request, asked revocation) (status int, text string) {
	b, _ := s.hub.board()
	if !b.live() {
		return http.StatusServiceUnavailable, "docent does not see the ensemble now"
	}
	l, c := b.contender(asked.Znode)
	switch {
	case c == nil || fenceText(c.Czxid) != asked.Fence:
		return http.StatusNotFound, "there is no such contender any more"
	case l.Kind.Unfair():
		return http.StatusConflict, "an unfair mutex has no revocation: see docent break"
	}
	ctx, cancel := context.WithTimeout(r.Context(), revokeLimit)
	defer cancel()
	if err := s.cfg.Revoke(ctx, asked.Znode); err != nil {
		return http.StatusBadGateway, zktel.ErrorType(err)
	}
	return http.StatusOK, "asked to release"
}

// contender returns the contender whose znode is at path, and its lock; nil if the board has none.
func (b *board) contender(path string) (*inspect.Lock, *inspect.Contender) {
	for _, e := range b.entries {
		for i := range e.lock.Contenders {
			if c := &e.lock.Contenders[i]; c.Znode == path {
				return e.lock, c
			}
		}
	}
	return nil, nil
}
