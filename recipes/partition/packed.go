package partition

import (
	"bytes"
	"compress/gzip"
	"io"
)

// packed returns the data as members write it: as gzip, so that each member can read it, whether its client
// compresses or not. A client that compresses adds its own layer, and takes one off what it reads.
func packed(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

// The bounds of what unpacked does for data that is no member's.
const (
	maxLayers     = 2 // a member's, and its client's
	maxDigest     = 1 << 10
	maxSettlement = 16 << 20
)

// unpacked returns the data as it was before all members' and clients' layers. What is no gzip stays as it is, and
// what has more than most bytes without a layer.
func unpacked(data []byte, most int) []byte {
	for range maxLayers {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			break
		}
		inner, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
		if err != nil || len(inner) > most {
			break
		}
		data = inner
	}
	return data
}
