package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	for _, path := range must.Get(filepath.Glob(filepath.Join("..", "img", "*.svg")))(t) {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "scale-") {
			continue // scripts/curves draws these, and the bench's tests check them
		}
		if !slices.ContainsFunc(drawings(), func(d drawing) bool { return d.name == name }) {
			t.Errorf("%s is not a drawing of this program", path)
		}
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
