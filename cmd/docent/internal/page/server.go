// Package page serves one page that shows the locks of an ensemble: holders, waiters, the wait-for
// graph, and the holds of the last minutes.
//
// A [Source] gives views of the locks. The server makes a board of the latest one. Each tab of a
// browser reads a stream of its own. A message brings the tab to the latest board. A slow tab misses
// boards and delays nothing.
//
// # Security
//
// The frame of the page holds no secret. All else needs the token. Every request must name a known
// host, because a page of another site can make a browser connect to loopback under that site's name.
// The page writes nothing, unless [Config.Revoke] is set.
package page

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/form"
)

// A Source gives views of the locks. [inspect.Live] is one.
type Source = change.Source

// A Config is what a [Server] needs.
type Config struct {
	Source  Source
	Servers string // the ensemble, as the page names it
	Root    string // the path below which the locks are
	Token   string
	Hosts   []string     // each is a value of the Host header that is accepted
	Log     *slog.Logger // of refusals and revocations; nil for none

	// Revoke asks the holder whose znode is at a path to release. If Revoke is nil, no handler of
	// the page writes.
	Revoke func(ctx context.Context, znode string) error

	Beat  time.Duration // between the signs of life on a stream; 0 is 1 s
	Write time.Duration // a reply, or a message of a stream, that takes longer is cut; 0 is 10 s
	Read  time.Duration // a request's body that takes longer is cut; 0 is 10 s
}

// A Server serves the page. Its methods may be called concurrently.
type Server struct {
	cfg     Config
	hub     *hub
	streams chan struct{} // has one for each stream
	refused counter       // requests, by reason
	revoked counter       // by outcome
	handler http.Handler
}

// NewServer returns a server.
func NewServer(cfg Config) *Server {
	cfg.Beat = cmp.Or(cfg.Beat, time.Second)
	cfg.Write, cfg.Read = cmp.Or(cfg.Write, 10*time.Second), cmp.Or(cfg.Read, 10*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, hub: newHub(), streams: make(chan struct{}, maxStreams)}
	s.handler = s.routes()
	return s
}

// ServeHTTP serves the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.addAssets(mux)
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /events", s.needToken(s.events))
	mux.Handle("GET /trace.json", s.needToken(s.trace))
	mux.Handle("GET /metrics", s.needToken(s.metrics))
	if s.cfg.Revoke != nil {
		mux.Handle("POST /revoke", http.NewCrossOriginProtection().Handler(s.needToken(s.revoke)))
	}
	return s.guard(mux)
}

// Collect makes a board of each view of the source. It returns when ctx ends.
func (s *Server) Collect(ctx context.Context) {
	for view := range s.cfg.Source.Views(ctx) {
		s.hub.publish(view)
	}
}

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	closeTimeout  = 2 * time.Second
)

// Serve collects views and serves the page on l, until ctx ends. Streams end with ctx. It
// closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup // of the two goroutines, which end with ctx
	defer all.Wait()
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 16 << 10, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	all.Go(func() { s.Collect(ctx) })
	all.Go(func() {
		<-ctx.Done()
		grace, end := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer end()
		if server.Shutdown(grace) != nil {
			_ = server.Close() // cuts what is left
		}
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

//go:embed assets
var assets embed.FS

// typeOf returns the content type of a file. It does not use the system's table, because that varies.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".ico":
		return "image/x-icon"
	}
	return "text/javascript; charset=utf-8"
}

// addAssets adds the frame of the page and the schema of docent's JSON. Neither needs a token.
func (s *Server) addAssets(mux *http.ServeMux) {
	mux.HandleFunc("GET /schema.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(form.Schema) // an error means that the browser has gone
	})
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // the binary lacks its files
	}
	for _, file := range files {
		route := "/" + file.Name()
		if file.Name() == "index.html" {
			route = "/{$}"
		}
		mux.HandleFunc("GET "+route, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", typeOf(file.Name()))
			http.ServeFileFS(w, r, assets, "assets/"+file.Name())
		})
	}
}
