package framework

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// emptyGzip is what Curator (GzipCompressionProvider) writes for empty data in Java 16 and later.
// Go's writer would end it with another, equivalent block.
const emptyGzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// pack returns data as the client writes it.
func (cfg *config) pack(data []byte) []byte {
	switch {
	case !cfg.compression:
		return data
	case len(data) == 0:
		return []byte(emptyGzip)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // a buffer accepts everything
	_ = w.Close()
	return packed.Bytes()
}

// unpack returns data as it was before pack. If data is empty, unpack returns it unchanged: parents
// that were created as containers have no data. The result has a maximum size, so that a few bytes
// can't use up all memory.
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

// maxExpansion is how many times the size of the longest reply unpacked data may have.
const maxExpansion = 16
