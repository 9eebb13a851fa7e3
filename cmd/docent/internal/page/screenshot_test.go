package page_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var (
	shots   = flag.String("screenshots", "", "directory for pictures of the page at -page, in light and dark")
	shotURL = flag.String("page", "", "URL of a page, as docent prints it")
)

// With -screenshots and -page, this makes the pictures of docs/img.
func TestScreenshots(t *testing.T) {
	if *shots == "" {
		t.Skip("no -screenshots: nothing is tested here")
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"page-" + scheme: 1360, "narrow-" + scheme: 360} {
			tb := openTab(t)
			call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			tb.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(*shotURL))
			tb.await("document.body.dataset.state === 'live' && document.querySelector('#graph svg')")
			image, err := chromedp.Run(tb.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(*shots, name+".png"), image, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
