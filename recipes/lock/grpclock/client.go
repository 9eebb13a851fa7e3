package grpclock

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/lock"
)

// UnaryClientInterceptor returns an interceptor that makes a call while it holds the call's lock.
// locker returns that lock, or nil for a call that needs none; it may be called concurrently. The
// call's context bounds the wait for the lock, and doOpts may bound it further.
//
// The call ends when the lock is lost, and then the error matches [lock.ErrLost]. Errors of the lock
// are returned as they are, without a status. The lock's fence is sent in the call's metadata, for
// [FenceFromContext], in place of one that the context has from a call being forwarded or from an
// outer interceptor; a [lock.Multi] has none. UnaryClientInterceptor panics if locker is nil.
func UnaryClientInterceptor(
	locker func(method string, req any) (lock.Locker, error), doOpts ...lock.DoOption,
) grpc.UnaryClientInterceptor {
	usercall.Require("locker", locker != nil)
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		l, err := locker(method, req)
		if err != nil {
			return err
		}
		if l == nil {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		return lock.Do(ctx, l, func(ctx context.Context, lease *lock.Lease) error {
			return invoke(withFence(ctx, lease.Fence()), method, req, reply, cc, opts...)
		}, doOpts...)
	}
}

// withFence returns ctx with the fence as the only one of the call. A fence of 0 is none.
func withFence(ctx context.Context, fence int64) context.Context {
	if fence == 0 {
		return ctx
	}
	sent, _ := metadata.FromOutgoingContext(ctx) // a copy
	if sent == nil {
		sent = metadata.MD{}
	}
	sent.Set(fenceKey, strconv.FormatInt(fence, 10))
	return metadata.NewOutgoingContext(ctx, sent)
}
