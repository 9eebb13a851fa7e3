package grpclock

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/lock"
)

// UnaryServerInterceptor returns an interceptor that gives each call a new [lock.Owner], named after
// the method, and translates the handler's error by [Code]. If the owner still holds reentrant locks
// when the handler has returned or panicked, the interceptor calls leaked with their paths. leaked
// may be nil, and may be called concurrently.
func UnaryServerInterceptor(leaked func(ctx context.Context, method string, paths []string)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, done := own(ctx, info.FullMethod, leaked)
		defer done()
		resp, err := handler(ctx, req)
		return resp, statusError(ctx, err)
	}
}

// StreamServerInterceptor is [UnaryServerInterceptor] for streams. A stream is one call, with one
// owner.
func StreamServerInterceptor(leaked func(ctx context.Context, method string, paths []string)) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, done := own(stream.Context(), info.FullMethod, leaked)
		defer done()
		return statusError(ctx, handler(srv, &ownedStream{stream, ctx}))
	}
}

// own returns the context of a call with an owner of its own, and a function for the call's end.
func own(ctx context.Context, method string, leaked func(context.Context, string, []string)) (context.Context, func()) {
	owner := lock.NewOwner(method)
	ctx = lock.ContextWithOwner(ctx, owner)
	return ctx, func() {
		if paths := owner.Holds(); len(paths) > 0 && leaked != nil {
			leaked(ctx, method, paths)
		}
	}
}

// An ownedStream is a stream whose context has the owner.
type ownedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context with the owner.
func (s *ownedStream) Context() context.Context { return s.ctx }

// fenceKey is the key of a lock's fence in a call's metadata.
const fenceKey = "docent-fence"

// FenceFromContext returns the fence that the caller sent with [UnaryClientInterceptor], and false
// if there is none, or one that is no number. A storage that compares it with the highest fence it
// has seen refuses calls of former holders. If a proxy has added a fence of its own, the call has
// several, and FenceFromContext returns the smallest: the storage then refuses the call if any of
// them is a former holder's.
func FenceFromContext(ctx context.Context) (fence int64, ok bool) {
	usercall.Require("ctx", ctx != nil)
	for _, value := range metadata.ValueFromIncomingContext(ctx, fenceKey) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n <= 0 {
			return 0, false
		}
		if !ok || n < fence {
			fence, ok = n, true
		}
	}
	return fence, ok
}
