package page

import (
	"crypto/subtle"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy lets the page load its own files and talk to its own server, and nothing else. It keeps
// scripts from making HTML of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// maxBody is the size of the body of a request, in bytes.
const maxBody = 8 << 10

// guard sets the headers and time limits of every reply, and refuses what comes from elsewhere. The
// limits are for refused requests, too: before a reply, the server reads the rest of the body.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(name, value)
		}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(s.cfg.Write)) // every connection of a server has deadlines
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(s.cfg.Read))
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		switch {
		case !slices.Contains(s.cfg.Hosts, r.Host): // a rebound name of another site, for one
			s.refuse(w, r, http.StatusMisdirectedRequest, "host", "docent serve doesn't answer to this host: see --allow-host")
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			s.refuse(w, r, http.StatusForbidden, "cross_site", "requests from other sites are refused")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// needToken refuses requests without the token.
func (s *Server) needToken(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found || subtle.ConstantTimeCompare([]byte(token), []byte(s.cfg.Token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.refuse(w, r, http.StatusUnauthorized, "token", "the token is missing or wrong: open the URL that docent printed, with #token= and the token")
			return
		}
		next(w, r)
	})
}

// refuse replies with an error, counts it and logs it. It names no token and no query.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, reason, text string) {
	s.refused.add(reason)
	s.cfg.Log.Warn("refused", slog.String("reason", reason), slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.String("host", r.Host), slog.String("remote", r.RemoteAddr))
	http.Error(w, text, status)
}
