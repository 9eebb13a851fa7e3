package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"

	"github.com/docent-go/docent/framework"
)

const (
	kdcPort = "88"
	// maxKDCReply is room for any ticket. A KDC announces the length of what it sends.
	maxKDCReply = 1 << 20
)

var (
	// errUnreachable is returned when no KDC answered.
	errUnreachable = errors.New("no KDC answers")
	// errSilent is the fault of a KDC that took too long.
	errSilent = errors.New("it did not answer in its share of the time")
)

// realms are what krb5.conf says, and which KDC answered last.
type realms struct {
	*config.Config // immutable

	mu       sync.Mutex // guards following; not held while a KDC is asked
	answered string     // address; "" for none yet
}

// ask sends a request to the realm's KDCs, one after another until one answers, and returns the
// reply. It begins with the KDC that answered last, so a silent one costs its time once. An error
// message of the KDC's is returned as a [messages.KRBError].
func (r *realms) ask(ctx context.Context, realm string, request []byte) ([]byte, error) {
	addrs, err := r.kdcs(ctx, realm)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	faults := []error{errUnreachable}
	for i, addr := range addrs {
		reply, err := askOne(ctx, addr, len(addrs)-i, request)
		if err == nil {
			r.prefer(addr)
			return checked(reply)
		}
		faults = append(faults, fmt.Errorf("%s: %w", addr, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, joined(faults)
}

// prefer makes addr the first KDC that is asked.
func (r *realms) prefer(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = addr
}

// joined returns faults in one line.
func joined(faults []error) error {
	err := faults[0]
	for _, next := range faults[1:] {
		err = fmt.Errorf("%w: %w", err, next)
	}
	return err
}

// checked returns a reply, or the error that the KDC says in it.
func checked(reply []byte) ([]byte, error) {
	var refused messages.KRBError
	if refused.Unmarshal(reply) == nil {
		return nil, refused
	}
	return reply, nil
}

// askOne asks one of the KDCs, of which left are left. It leaves time for the others and for
// the server.
func askOne(ctx context.Context, addr string, left int, request []byte) ([]byte, error) {
	limited := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left+1))
		defer cancel()
	}
	reply, err := roundTrip(limited, addr, request)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, errSilent
	}
	return reply, endedBy(ctx, err)
}

// roundTrip sends a request to a KDC and returns the reply. The connection is closed when ctx ends.
func roundTrip(ctx context.Context, addr string, request []byte) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxKDCReply {
		return nil, fmt.Errorf("a reply of %d bytes: must be at most %d", n, maxKDCReply)
	}
	reply := make([]byte, n)
	_, err = io.ReadFull(conn, reply)
	return reply, err
}

// endedBy returns err, with the reason why ctx ended if it has.
func endedBy(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(context.Cause(ctx), ctx.Err()):
		return context.Cause(ctx)
	default:
		return fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
}

// kdcs returns the addresses of the realm's KDCs in the order in which they are to be asked.
func (r *realms) kdcs(ctx context.Context, realm string) ([]string, error) {
	addrs, err := r.named(ctx, realm)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(addrs, r.answered); i > 0 {
		addrs = slices.Insert(slices.Delete(addrs, i, i+1), 0, r.answered)
	}
	return addrs, nil
}

// named returns the KDCs of krb5.conf, else those in the DNS if krb5.conf says so (dns_lookup_kdc).
func (r *realms) named(ctx context.Context, realm string) ([]string, error) {
	var addrs []string
	for _, known := range r.Realms {
		if known.Realm != realm {
			continue
		}
		for _, kdc := range known.KDC {
			addrs = append(addrs, withPort(kdc))
		}
	}
	if len(addrs) > 0 || !r.LibDefaults.DNSLookupKDC {
		return addrs, nil
	}
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", "tcp", realm)
	if err != nil {
		return nil, endedBy(ctx, err)
	}
	for _, record := range records {
		host, port := strings.TrimSuffix(record.Target, "."), strconv.Itoa(int(record.Port))
		addrs = append(addrs, net.JoinHostPort(host, port))
	}
	return addrs, nil
}

func withPort(kdc string) string {
	if _, _, err := net.SplitHostPort(kdc); err == nil {
		return kdc
	}
	return net.JoinHostPort(strings.Trim(kdc, "[]"), kdcPort)
}

// refusal returns err as [framework.ErrAuthFailed] if a KDC has refused a request.
func refusal(err error) error {
	var refused messages.KRBError
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.ErrorCode {
	case errorcode.KDC_ERR_SVC_UNAVAILABLE, errorcode.KRB_ERR_GENERIC:
		return fmt.Errorf("%w: %w", errUnreachable, err) // the KDC's own trouble
	default:
		return fmt.Errorf("%w: %w", framework.ErrAuthFailed, err)
	}
}
