package fragments_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// The second holder writes, and the first holder's late write is refused.
func TestGuarantees_a_fence_in_SQL(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../guarantees.md"))(t)
	create := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(page)
	if create == nil {
		t.Fatal("the page has no table")
	}
	db := openSQLite(t)
	for _, statement := range []string{string(create[1]), `INSERT INTO report (id, body) VALUES (17, '')`} {
		must.Get(db.ExecContext(t.Context(), statement))(t)
	}
	var first, second, third int64
	inBubble(t, func(t *testing.T, s scene) {
		for _, fence := range []*int64{&first, &second, &third} {
			lease := s.hold(t, "/locks/report")
			*fence = lease.Fence()
			must.OK(t, lease.Release(t.Context()))
		}
	})
	for _, write := range []struct {
		fence   int64
		refused bool
	}{{first, false}, {first, false}, {second, false}, {first, true}, {third, false}, {second, true}} {
		if err := writeRow(t.Context(), db, write.fence, []byte("body")); (err != nil) != write.refused {
			t.Errorf("fence %d after %d, %d, %d: %v", write.fence, first, second, third, err)
		}
	}
}

func writeRow(ctx context.Context, db *sql.DB, fence int64, report []byte) error {
	const update = `UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2`
	result, err := db.ExecContext(ctx, update, report, fence, 17)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errors.New("a later holder has written already"))
	}
	return nil
}

// The store computes ETags of contents only, as S3 does: a claim has to change the content.
func TestGuarantees_a_fence_in_an_object_store(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(&objects{content: []byte("0\nold")})
	defer store.Close()
	ctx, url := t.Context(), store.URL+"/report"
	first, second := must.Get(claim(ctx, url, 5))(t), must.Get(claim(ctx, url, 6))(t)
	if _, err := put(ctx, url, first, 5, []byte("late")); !errors.Is(err, errClaimed) {
		t.Errorf("the first holder's late write: %v, want %v", err, errClaimed)
	}
	if _, err := claim(ctx, url, 5); !errors.Is(err, errClaimed) {
		t.Errorf("the first holder's late claim: %v, want %v", err, errClaimed)
	}
	for _, body := range []string{"new", "newer"} {
		second = must.Get(put(ctx, url, second, 6, []byte(body)))(t)
	}
	if _, body, fence, err := read(ctx, url); err != nil || string(body) != "newer" || fence != 6 {
		t.Errorf("the report is %q of %d, %v", body, fence, err)
	}
}

// claim does the page's steps 1 and 2.
func claim(ctx context.Context, url string, fence int64) (etag string, err error) {
	etag, body, last, err := read(ctx, url)
	if err != nil {
		return "", err
	}
	if last > fence {
		return "", errClaimed
	}
	return put(ctx, url, etag, fence, body)
}

func read(ctx context.Context, url string) (etag string, body []byte, fence int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", nil, 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", nil, 0, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return "", nil, 0, err
	}
	head, body, _ := bytes.Cut(content, []byte("\n"))
	fence, err = strconv.ParseInt(string(head), 10, 64)
	return response.Header.Get("ETag"), body, fence, err
}

var errClaimed = errors.New("a later holder has claimed the report")

// put replaces the version that has the ETag, and returns the new version's ETag.
func put(ctx context.Context, url, etag string, fence int64, report []byte) (string, error) {
	content := append(fmt.Appendf(nil, "%d\n", fence), report...) // begins with the fence
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	request.Header.Set("If-Match", etag)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err // perhaps it was done: step 1
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return response.Header.Get("ETag"), nil
	case http.StatusPreconditionFailed:
		return "", errClaimed
	default:
		return "", fmt.Errorf("put the report: %s", response.Status) // step 1
	}
}

// An objects is a store with one object.
type objects struct {
	mu      sync.Mutex // guards following
	content []byte
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Method == http.MethodPut {
		if r.Header.Get("If-Match") != o.etag() {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		o.content, _ = io.ReadAll(r.Body)
	}
	w.Header().Set("ETag", o.etag())
	if r.Method == http.MethodGet {
		_, _ = w.Write(o.content)
	}
}

func (o *objects) etag() string {
	return fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(o.content)))
}

func TestGuarantees_a_guard(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		must.Get(s.client.Create(t.Context(), "/report/latest", nil, framework.WithParents()))(t)
		lease := s.hold(t, "/locks/report")
		must.OK(t, guarded(t.Context(), s.client, lease, []byte("new")))
		must.OK(t, lease.Release(t.Context()))
		if err := guarded(t.Context(), s.client, lease, []byte("late")); !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("a write after the release: %v, want %v", err, framework.ErrNoNode)
		}
		if data, _, err := s.client.Get(t.Context(), "/report/latest"); err != nil || string(data) != "new" {
			t.Errorf("the report is %q, %v", data, err)
		}
	})
}

func guarded(ctx context.Context, client *framework.Client, lease *lock.Lease, report []byte) error {
	_, err := client.Txn(ctx, lease.Guard(), framework.OpSet("/report/latest", report, framework.AnyVersion))
	return err
}
