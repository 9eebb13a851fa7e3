package httplock

import (
	"context"
	"net/http"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/lock"
)

// WithOwner returns a handler that gives each request a new [lock.Owner] and calls next. It is for
// handlers that lock by themselves, with the request's context. If next returns while the owner
// still holds reentrant locks, the handler calls leaked with their paths, even if next panics.
// leaked may be nil, and may be called concurrently.
//
// A leaked lock stays held until its lease is released or lost. Another request can't re-enter it,
// because the request has another owner. WithOwner panics if next is nil.
func WithOwner(next http.Handler, leaked func(r *http.Request, paths []string)) http.Handler {
	usercall.Require("next", next != nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := owned(r)
		defer func() { // even when next panics
			owner, _ := lock.OwnerFromContext(ctx)
			if paths := owner.Holds(); len(paths) > 0 && leaked != nil {
				leaked(r, paths)
			}
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ownedKey marks the context of a request whose owner owned has made. An owner that came from
// elsewhere, such as the server's base context, may be the owner of all requests.
type ownedKey struct{}

// owned returns the request's context, with an owner of this request.
func owned(r *http.Request) context.Context {
	ctx := r.Context()
	if ctx.Value(ownedKey{}) != nil {
		return ctx
	}
	return lock.ContextWithOwner(context.WithValue(ctx, ownedKey{}, true), lock.NewOwner(name(r)))
}

// name returns what participants and logs show of a request. It has no value of the path, which may
// be a secret.
func name(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	return r.Method
}
