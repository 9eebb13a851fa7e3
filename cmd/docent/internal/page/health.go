package page

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
)

// unnamed is the type of an error that has no name.
const unnamed = "_OTHER"

// health replies 200 while the page follows the ensemble, else 503 with the reason. It needs no token,
// because probes send none, and names no host and no path.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	b, _ := s.hub.board()
	status := http.StatusServiceUnavailable
	if b.live() {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, healthOf(b.view)+"\n") // an error means that the client has gone
}

func healthOf(view inspect.View) string {
	text := string(view.State)
	if view.State == inspect.Stale {
		text += " since " + view.Since.UTC().Format(time.RFC3339)
	}
	switch fault := rootFault(view); {
	case fault != "":
		return fmt.Sprintf("%s: the root can't be read: %s", text, fault)
	case view.State == inspect.Scanning:
	case view.Cause != nil && zktel.ErrorType(view.Cause) != unnamed:
		return text + ": " + zktel.ErrorType(view.Cause)
	}
	return text
}

// rootFault returns the kind of error for which the root can't be read, "" if that is not why the view is
// not current.
func rootFault(view inspect.View) string {
	for _, fault := range []error{framework.ErrNoAuth, framework.ErrTooLarge, framework.ErrNotGzip} {
		if view.State != inspect.Current && errors.Is(view.Cause, fault) {
			return zktel.ErrorType(view.Cause)
		}
	}
	return ""
}
