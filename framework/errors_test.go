package framework_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A path that a user typed can't write a line of its own to a log.
func TestErrorTextsHaveOneLine(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		for _, path := range []string{"/a\nb", "/a\x1b[31m", "/a\xff", "/\u2028", "a\rb"} {
			_, _, get := c.Get(t.Context(), path)
			_, txn := c.Txn(t.Context(), framework.OpDelete(path, framework.AnyVersion))
			for what, err := range map[string]error{
				"Get": get, "Txn": txn, "Delete": c.Delete(t.Context(), path), "DeleteTree": c.DeleteTree(t.Context(), path),
				"CheckCreate": c.CheckCreate(path, nil),
			} {
				if err == nil {
					continue // valid for ZooKeeper, or no path
				}
				if strings.ContainsAny(err.Error(), "\r\x1b\u2028") || strings.Contains(err.Error(), "\xff") || strings.Contains(err.Error(), "a\nb") {
					t.Errorf("%s: %q", what, err.Error())
				}
			}
		}
	})
}

// A write whose first attempt has an unknown outcome says so, even if no server can be reached for a
// further attempt.
func TestAWriteIsOfUnknownOutcome_if_only_its_first_attempt_was_sent(t *testing.T) {
	const limit = 3 * time.Second
	writes := map[string]struct {
		op    fault.Op
		write func(ctx context.Context, c *framework.Client) error
	}{
		"set": {fault.SetData, func(ctx context.Context, c *framework.Client) error {
			return last(c.Set(ctx, "/node", []byte("x"), 0))
		}},
		"delete": {fault.Delete, func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/node") }},
		"create": {fault.Create, func(ctx context.Context, c *framework.Client) error {
			return last(c.Create(ctx, "/other", nil))
		}},
		"idempotent create": {fault.Create, func(ctx context.Context, c *framework.Client) error {
			return last(c.Create(ctx, "/other", nil, framework.Idempotent()))
		}},
	}
	ends := map[string]struct {
		policy retry.Policy
		end    func(c *framework.Client, cancel func())
		want   error
	}{
		"ctx ends":            {retry.Forever(time.Second / 8), func(_ *framework.Client, cancel func()) { cancel() }, context.Canceled},
		"ctx ends in a pause": {retry.Forever(time.Minute), func(_ *framework.Client, cancel func()) { cancel() }, context.Canceled},
		"the policy ends":     {retry.Times(3, time.Second/8), func(*framework.Client, func()) {}, framework.ErrNotConnected},
		"the client is closed": {retry.Forever(time.Second / 8), func(c *framework.Client, _ func()) {
			_ = c.Close() // it can't end its session
		}, framework.ErrClosed},
	}
	for write, w := range writes {
		for end, e := range ends {
			runVirtually(t, write+"/"+end, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv, framework.WithRetry(e.policy))
				mustCreate(t, c, "/node", "")
				srv.Rules().Add(fault.Rule{Op: w.op, Action: fault.DropReply})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				srv.Refuse()
				done := background(func() error { return w.write(ctx, c) }) // ends with the call
				<-time.After(limit)
				e.end(c, cancel)
				wantErr(t, write, <-done, e.want, framework.ErrUnknownOutcome)
				srv.Accept()
			})
		}
	}
}

func TestNoSecretAndNoDataIsInAnySpanMetricOrLog(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		tr, ms, route, root := newTraces(), newMeters(), env.Route(t), fresh(t)
		var rec record
		traced := tr.caller(t)
		mustCreate(t, env.Client(t), root, "")
		observed := []framework.Option{
			framework.WithTracerProvider(tr.provider), framework.WithMeterProvider(ms.provider),
			framework.WithNamespace(root[1:]),
		}
		c := route.Client(t, append(observed, framework.WithAuth("digest", []byte(user+":"+secret)),
			framework.WithACL(acl.Creator()...), framework.WithLogger(rec.logger()))...)
		stranger := env.Client(t, append(observed,
			framework.WithSlog(slog.New(slog.NewJSONHandler(&rec, &slog.HandlerOptions{Level: slog.LevelDebug}))))...)

		mustCreate(t, c, "/mine", secretData)
		acl, _, err := c.ACL(t.Context(), "/mine")
		must.OK(t, err)
		digest := strings.TrimPrefix(acl[0].ID, user+":")
		wantErr(t, "a stranger's get", last(stranger.Get(traced, "/mine")), framework.ErrNoAuth)
		route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
		for name, call := range secretCalls(c) {
			ctx, cancel := context.WithTimeout(traced, patience)
			rec.add(call(ctx)) // whatever it says
			cancel()
			if t.Failed() {
				t.Fatal(name)
			}
		}
		_, invalid := framework.NewClient("alice:"+secret+"@host:1", framework.WithAuth("", []byte(user+":"+secret)))
		rec.add(acl, acl[0], c, invalid, framework.WithAuth("digest", []byte(user+":"+secret)))
		id, password := framework.SessionSecret(c)

		all := ms.collect(t)
		export(t, &rec, tr.spans.GetSpans(), all)
		for _, s := range []string{secret, digest, secretData, string(password)} {
			rec.check(t, s, fmt.Sprint([]byte(s)), hex.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte(s)))
		}
		for _, shown := range []string{fmt.Sprintf("%#x", id), root + "/mine", zktel.MetricOperationDuration, "no_auth", "attempt failed"} {
			if !strings.Contains(rec.String(), shown) {
				t.Errorf("the record does not have %q: what was checked is not all", shown)
			}
		}
		for name, m := range all {
			if text := fmt.Sprintf("%+v", m.Data); strings.Contains(text, "/mine") || strings.Contains(text, fmt.Sprintf("%#x", id)) {
				t.Errorf("the metric %s has a path or a session: %s", name, text)
			}
		}
	})
}

// A credential in a connect string is a fault, and no error shows a part of it, wherever the
// characters of the secret cut the string.
func TestConnectString_with_a_credential(t *testing.T) {
	t.Parallel()
	const left, right = "s3cr3t", "pa55w0rd"
	for _, separator := range []string{"", ",", "/", ":", "@", "//", "://", ",/", "[", "]", " ", "%", "\n", ":1,", "/,:@"} {
		for _, form := range []string{"app:%s@h1", "zk://app:%s@h1:2181", "h0:2181,app:%s@h1/chroot", "app:%s@h1,h2:x", "[%s@h1", "/%s@,", "%s@h1:99999"} {
			connect := fmt.Sprintf(form, left+separator+right)
			c, err := framework.NewClient(connect)
			if err == nil {
				err = c.Close() // it is the name of a host, or of a chroot
			}
			source := func(context.Context) ([]string, error) { return nil, nil }
			_, sourced := framework.NewClient("/chroot"+connect, framework.WithServers(source), framework.WithMaxPacket(0, 0))
			for _, err := range []error{err, sourced} {
				if err != nil && (strings.Contains(err.Error(), left) || strings.Contains(err.Error(), right)) {
					t.Errorf("%q: %v", connect, err)
				}
			}
		}
	}
	for _, connect := range []string{"zk://app:s3cr3t@h1:2181", "app:s3cr3t,x@h1", "app:s3/cr3t@h1"} { // of a user's report
		_, err := framework.NewClient(connect)
		if err == nil || !strings.Contains(err.Error(), "***@h1") || !strings.Contains(err.Error(), "see WithAuth") || strings.Contains(err.Error(), "s3") {
			t.Errorf("%q: %v", connect, err)
		}
	}
}

// secretCalls write and read the secret data, and fail on it.
func secretCalls(c *framework.Client) map[string]func(context.Context) error {
	data := []byte(secretData)
	return map[string]func(context.Context) error{
		"get":           func(ctx context.Context) error { return last(c.Get(ctx, "/mine")) },
		"create again":  func(ctx context.Context) error { return last(c.Create(ctx, "/mine", data)) },
		"set":           func(ctx context.Context) error { return last(c.Set(ctx, "/mine", data, framework.AnyVersion)) },
		"set in vain":   func(ctx context.Context) error { return last(c.Set(ctx, "/mine", data, 77)) },
		"create or set": func(ctx context.Context) error { return last(c.CreateOrSet(ctx, "/either", data)) },
		"txn": func(ctx context.Context) error {
			return last(c.Txn(ctx, framework.OpCreate("/t", data), framework.OpSet("/none", data, framework.AnyVersion)))
		},
		"set ACL": func(ctx context.Context) error {
			return last(c.SetACL(ctx, "/mine", []acl.Entry{{Perms: acl.All, Scheme: "digest", ID: user + ":" + secret}}, framework.AnyVersion))
		},
		"watch": func(ctx context.Context) error { return last(c.Watch(ctx, "/either", framework.WatchData)) },
		"create protected": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
			defer cancel()
			return last(c.Create(ctx, "/p-", data, framework.Ephemeral(), framework.Protected()))
		},
	}
}

// export writes all that exporters get to see.
func export(t *testing.T, rec *record, spans any, metrics map[string]metricdata.Metrics) {
	t.Helper()
	rec.add(spans, metrics)
	for _, v := range []any{spans, metrics} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Logf("not as JSON: %v", err) // infinities and interfaces; the other forms have all
		}
		rec.add(string(text))
	}
}

// A program tells each code of a server from all others, even if it has no sentinel, and if the operation is
// one of a transaction.
func TestAnErrorHasTheCodeOfTheServersReply(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		must.OK(t, c.AwaitConnected(t.Context()))
		for _, tc := range []struct {
			refused fault.Code // 0 for none
			call    func() error
			code    int32
		}{
			{0, func() error { return c.Delete(t.Context(), "/none") }, -101},
			{0, func() error { return last(c.Txn(t.Context(), framework.OpDelete("/none", framework.AnyVersion))) }, -101},
			{0, func() error { return last(c.Get(t.Context(), "relative")) }, 0},
			{fault.InvalidACL, func() error { return last(c.Create(t.Context(), "/x", nil)) }, -114},
			{fault.NotReadOnly, func() error { return last(c.Create(t.Context(), "/x", nil)) }, -119},
			{fault.Throttled, func() error { return last(c.Create(t.Context(), "/x", nil)) }, -127},
		} {
			if tc.refused != 0 {
				srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.Refuse, Code: tc.refused, Times: fault.Forever})
			}
			err, op := tc.call(), new(framework.OpError)
			if !errors.As(err, &op) || op.Code() != tc.code {
				t.Errorf("%v: code %d, want %d", err, op.Code(), tc.code)
			}
			srv.Rules().Clear()
		}
	})
}
