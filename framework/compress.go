package framework

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// emptyGzip is how Curator compresses no data (GzipCompressionProvider), in
// Java 16 and later. Go's writer would end it with another, equivalent block.
const emptyGzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// pack returns data as it is written.
func (cfg *config) pack(data []byte) []byte {
	switch {
	case !cfg.compression:
		return data
	case len(data) == 0:
		return []byte(emptyGzip)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// unpack returns data as it was before it was written. No data at all is none,
// as parents have that were created as containers. What it expands to is
// bounded, so that a few bytes can't use up all memory.
func (cfg *config) unpack(data []byte) ([]byte, error) {
	if !cfg.compression || len(data) == 0 {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrNotGzip, len(data), err)
	}
	limit := int64(cfg.maxReply) * maxExpansion
	unpacked, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrNotGzip, len(data), err)
	case int64(len(unpacked)) > limit:
		return nil, fmt.Errorf("%w: it expands to more than %d bytes", ErrTooLarge, limit)
	}
	return unpacked, nil
}

// maxExpansion is by how much data may be larger than the longest reply once it
// is unpacked.
const maxExpansion = 16
