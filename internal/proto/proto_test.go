package proto_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/proto"
)

func TestEncoder(t *testing.T) {
	t.Parallel()
	e := proto.NewEncoder()
	e.Int32(-2)
	e.Int64(1 << 40)
	e.Bool(true)
	e.Bytes(nil)
	e.Bytes([]byte{7})
	e.String("a")
	e.Strings([]string{"b", ""})
	want := []byte{
		0, 0, 0, 0, // the length, set below
		0xff, 0xff, 0xff, 0xfe,
		0, 0, 1, 0, 0, 0, 0, 0,
		1,
		0xff, 0xff, 0xff, 0xff,
		0, 0, 0, 1, 7,
		0, 0, 0, 1, 'a',
		0, 0, 0, 2, 0, 0, 0, 1, 'b', 0, 0, 0, 0,
	}
	want[3] = byte(len(want) - proto.LengthSize)
	if got := e.Frame(); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	d := proto.NewDecoder(e.Body())
	if a, b, c := d.Int32(), d.Int64(), d.Bool(); a != -2 || b != 1<<40 || !c {
		t.Errorf("%d, %d, %v", a, b, c)
	}
	if a, b := d.Bytes(), d.Bytes(); a != nil || !bytes.Equal(b, []byte{7}) {
		t.Errorf("%v, %v", a, b)
	}
	if s, list := d.Path(), d.Strings(); s != "a" || !slices.Equal(list, []string{"b", ""}) || d.End() != nil {
		t.Errorf("%q, %q, %v", s, list, d.End())
	}
}

func TestDecoder_Strings(t *testing.T) {
	t.Parallel()
	list := func(n int32, texts ...string) []byte {
		e := proto.NewEncoder()
		e.Int32(n)
		for _, s := range texts {
			e.String(s)
		}
		return e.Body()
	}
	for name, tt := range map[string]struct {
		body []byte
		want []string
		ok   bool
	}{
		"none":                 {list(0), nil, true},
		"null":                 {list(-1), nil, true},
		"two":                  {list(2, "a", ""), []string{"a", ""}, true},
		"fewer_than_announced": {list(2, "a"), nil, false},
		"more_than_announced":  {list(1, "a", "b"), nil, false},
		"largest_count":        {list(math.MaxInt32, "a"), nil, false},
		"negative_count":       {list(-2, "a"), nil, false},
		"cut_short":            {list(1, "abc")[:8], nil, false},
		"nothing":              {nil, nil, false},
		"null_string":          {[]byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}, nil, false},
		"no_string":            {list(1, "")[:4:4], nil, false},
	} {
		d := proto.NewDecoder(tt.body)
		got := d.Strings()
		if err := d.End(); (err == nil) != tt.ok || tt.ok && !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, err, tt.want, tt.ok)
		}
	}
}

func TestDecoder_keeps_its_first_fault(t *testing.T) {
	t.Parallel()
	d := proto.NewDecoder([]byte{0, 0, 0})
	if n := d.Int32(); n != 0 || !errors.Is(d.Err(), proto.ErrMalformed) {
		t.Errorf("a short number is %d, %v", n, d.Err())
	}
	if d.Bool() || d.Err() == nil || d.End() == nil {
		t.Error("a field behind a fault was taken")
	}
}

func TestStat(t *testing.T) {
	t.Parallel()
	want := proto.Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
		EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
	}
	e := proto.NewEncoder()
	e.Stat(want)
	if len(e.Body()) != proto.StatSize || e.Body()[7] != 1 || e.Body()[proto.StatSize-1] != 11 {
		t.Errorf("encoded as %x", e.Body())
	}
	d := proto.NewDecoder(e.Body())
	if got := d.Stat(); got != want || d.End() != nil {
		t.Errorf("%+v, %v, want %+v", got, d.End(), want)
	}
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	password := bytes.Repeat([]byte{9}, proto.PasswordSize)
	for _, old := range []bool{false, true} {
		request := proto.ConnectRequest{Zxid: 1, Timeout: 2, Session: 3, Password: password, ReadOnly: !old, Old: old}
		d := proto.NewDecoder(request.Frame()[proto.LengthSize:])
		if got := d.ConnectRequest(); !reflect.DeepEqual(got, request) || d.End() != nil {
			t.Errorf("%+v, %v, want %+v", got, d.End(), request)
		}
		reply := proto.ConnectReply{Timeout: 2, Session: 3, Password: password, ReadOnly: !old, Old: old}
		d = proto.NewDecoder(reply.Frame()[proto.LengthSize:])
		if got := d.ConnectReply(); !reflect.DeepEqual(got, reply) || d.End() != nil {
			t.Errorf("%+v, %v, want %+v", got, d.End(), reply)
		}
	}
}

func TestReadFrame(t *testing.T) {
	t.Parallel()
	frame := proto.RequestFrame(7, proto.OpSync, proto.AppendString(nil, "/a"))
	body, err := proto.ReadFrame(bytes.NewReader(frame), len(frame))
	if want := []byte{0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2, '/', 'a'}; err != nil || !bytes.Equal(body, want) {
		t.Errorf("%x, %v, want %x", body, err, want)
	}
	long := proto.RequestFrame(7, proto.OpSetData, make([]byte, 100<<10))
	if body, err := proto.ReadFrame(bytes.NewReader(long), len(long)); err != nil || !bytes.Equal(body, long[proto.LengthSize:]) {
		t.Errorf("a long frame: %d bytes, %v", len(body), err)
	}
	if _, err := proto.ReadFrame(bytes.NewReader(long[:70<<10]), len(long)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a long frame that is cut short: %v", err)
	}
	for name, head := range map[string][]byte{"too_long": {0, 0, 1, 0}, "negative": {0xff, 0, 0, 0}} {
		if _, err := proto.ReadFrame(bytes.NewReader(head), 255); !errors.Is(err, proto.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(proto.ConnectReply{Timeout: 1, Session: 2, Password: make([]byte, proto.PasswordSize)}.Frame())
	f.Fuzz(func(t *testing.T, b []byte) {
		d := proto.NewDecoder(b)
		if list := d.Strings(); len(list) > len(b)/proto.LengthSize {
			t.Errorf("%d strings from %d bytes", len(list), len(b))
		}
		_ = d.End()
		d = proto.NewDecoder(b)
		if r := d.ConnectReply(); len(r.Password) > len(b) {
			t.Errorf("a password of %d bytes from %d", len(r.Password), len(b))
		}
	})
}
