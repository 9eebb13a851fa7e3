package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

func TestTheDrawingsAreUpToDate(t *testing.T) {
	t.Parallel()
	for _, d := range drawings() {
		path := filepath.Join("..", "img", d.name)
		got := must.Get(os.ReadFile(path))(t)
		if string(got) != d.draw() {
			t.Errorf("%s is not what this program draws: run make drawings", path)
		}
	}
	kept, err := filepath.Glob(filepath.Join("..", "img", "*.svg"))
	if err != nil || len(kept) != len(drawings()) {
		t.Errorf("%d drawings in docs/img (%v), want %d", len(kept), err, len(drawings()))
	}
}

func TestTheDrawingsAreXML(t *testing.T) {
	t.Parallel()
	for _, d := range drawings() {
		decoder := xml.NewDecoder(strings.NewReader(d.draw()))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", d.name, err)
			}
		}
	}
}
