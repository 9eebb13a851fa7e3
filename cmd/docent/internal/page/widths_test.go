package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/page"
)

// cutScript returns the cells and names that don't show the first twelve letters of their text, and those that
// are cut although they have no more. It says how many it has seen, too.
const cutScript = `(() => {
  const cut = [];
  let seen = 0;
  const letters = (node, most) => {
    const range = document.createRange(), walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    let left = most, width = 0;
    for (let text = walker.nextNode(); text && left > 0; text = walker.nextNode()) {
      const size = Math.min(left, text.data.length);
      for (let i = 0; i < size; i++) {
        range.setStart(text, i);
        range.setEnd(text, i + 1);
        width += range.getBoundingClientRect().width;
      }
      left -= size;
    }
    return width;
  };
  for (const node of document.querySelectorAll('table :is(.name, .owner, td .path, th, td.number, td.kind, td.small)')) {
    if (!node.checkVisibility() || node.closest('caption') || !node.textContent.trim()) continue;
    seen++;
    const style = getComputedStyle(node), inner = node.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const text = node.textContent.trim(), what = node.tagName + '.' + node.className + ' ' + text.slice(0, 30);
    if (inner + 1 < letters(node, 12) && inner + 1 < letters(node, text.length)) cut.push(what + ': ' + Math.round(inner) + ' px');
    else if (node.matches('.name, .owner, .path') && text.length < 40 && (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 3)) cut.push(what + ' is cut');
  }
  return JSON.stringify({ seen, cut });
})()`

// schedulers are locks whose contenders differ in their last letter.
func schedulers() []inspect.Lock {
	locks := []inspect.Lock{
		mutex("/locks/report", "scheduler-a", "scheduler-b", "scheduler-c"),
		mutex("/locks/import-of-the-nightly-orders", "payments-scheduler-a", "payments-scheduler-b", "payments-scheduler-c"),
		mutex("/locks/stock", "billing", "shipping"), mutex("/locks/stock-2", "shipping", "billing"),
		bySessions(mutex("/locks/zoo", "i", "jj"), inspect.Curator, 7),
	}
	for i := range locks {
		for k := range locks[i].Contenders {
			c := &locks[i].Contenders[k]
			c.Created = time.Now().Add(-time.Duration(400-10*k) * time.Hour) // a long age
			if c.Meta != nil {
				c.Meta.Host, c.Meta.PID = fmt.Sprintf("batch-worker-%d", k), 10_000+k
			}
		}
	}
	return locks
}

// opened returns a tab with a queue open, of locks with three schedulers.
func opened(t *testing.T, path string) *tab {
	t.Helper()
	s := serve(t, func(c *page.Config) { c.Revoke = refuseAll })
	s.published(schedulers()...)
	tb := openTabFor(t, 2*time.Minute)
	tb.do(chromedp.Navigate(s.base + "/?open=" + path + "#token=" + token))
	tb.await("document.querySelectorAll('#contenders tbody tr').length === 3")
	tb.awaitText("#findings", "deadlock")
	for _, button := range []string{"#graph-toggle", "#holds-toggle"} {
		tb.do(chromedp.Click(button))
	}
	return tb
}

func widths() []int64 { return []int64{360, 640, 1024, 1100, 1200, 1280, 1366, 1440} }

// At each width, and with a larger font of the browser, names can be told apart: no cell is narrower than the
// first twelve letters of its text, and names of less than 40 letters are whole. The page is no wider than its window.
func TestPage_shows_names_at_every_width(t *testing.T) {
	for _, path := range []string{"/locks/report", "/locks/import-of-the-nightly-orders"} {
		tb := opened(t, path)
		for _, font := range []int64{16, 20, 24, 32} { // twice the usual one as well
			call(tb, cdppage.SetFontSizes, cdppage.SetFontSizesParams{FontSizes: &cdppage.FontSizes{Standard: font, Fixed: font}})
			tb.await(fmt.Sprintf("getComputedStyle(document.documentElement).fontSize === '%gpx'", float64(font)*15/16))
			for _, width := range widths() {
				if width < 40*font { // the narrowest is for the usual font
					if font > 16 {
						continue
					}
				}
				tb.do(chromedp.EmulateViewport(width, 900))
				tb.await(fmt.Sprintf("innerWidth === %d", width))
				if got := get[string](tb, cutScript); !strings.Contains(got, `"cut":[]`) || strings.Contains(got, `"seen":0`) {
					t.Errorf("%d px, font of %d px: %s", width, font, got)
				}
				if wide := get[int](tb, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
					t.Errorf("%d px, font of %d px: %d px too wide", width, font, wide)
				}
			}
		}
	}
}

// The letters of the pictures are as large as small print of the page, at every width and font of the browser,
// until the user zooms.
func TestPage_letters_of_the_pictures(t *testing.T) {
	s := serve(t, nil)
	tb := openTabFor(t, 2*time.Minute)
	locks := append(scenes()["50-locks"], schedulers()...)
	s.published(locks...)
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	tb.await("document.querySelectorAll('#graph .node').length > 20 && document.querySelectorAll('#timeline .bar').length > 5")
	for _, font := range []int64{16, 24} {
		call(tb, cdppage.SetFontSizes, cdppage.SetFontSizesParams{FontSizes: &cdppage.FontSizes{Standard: font, Fixed: font}})
		tb.await(fmt.Sprintf("getComputedStyle(document.documentElement).fontSize === '%gpx'", float64(font)*15/16))
		for _, width := range widths() {
			tb.do(chromedp.EmulateViewport(width, 900))
			tb.await(fmt.Sprintf("innerWidth === %d", width))
			want := 11.5 * float64(font) / 16
			tb.await(fmt.Sprintf("%s >= %g", lettersScript, want))
		}
	}
}

// lettersScript is the size of the smallest letters of the pictures, in pixels.
const lettersScript = `Math.min(...[...document.querySelectorAll('#graph text, #timeline text')].map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))`

// A queue that is open with the first message takes its place from the graph, whose letters stay as large.
func TestPage_letters_beside_a_queue(t *testing.T) {
	s := serve(t, nil)
	locks := scenes()["1000-waiters"]
	s.published(locks...)
	tb := openTab(t)
	tb.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.base+"/?open=/locks/crowd#token="+token))
	tb.await("document.querySelectorAll('#contenders tbody tr').length === 8 && document.querySelectorAll('#graph .node').length > 5")
	tb.await(lettersScript + " >= 11.5")
}

// The parts of the graph are side by side where the box has room for them, and none is cut or on another one. Nor is
// there room left next to the first row for a part that is below it.
func TestPage_parts_of_the_graph_have_room(t *testing.T) {
	s := serve(t, nil)
	locks := scenes()["deadlock"]
	s.published(locks...)
	tb := openTabFor(t, 2*time.Minute)
	tb.do(chromedp.Navigate(s.base + "/?open=/locks/stock#token=" + token))
	tb.await("document.querySelectorAll('#contenders tbody tr').length === 3 && document.querySelectorAll('#graph .node').length > 20")
	for _, width := range widths() {
		tb.do(chromedp.EmulateViewport(width, 900))
		tb.await(fmt.Sprintf("innerWidth === %d", width))
		tb.await(partsScript + " === ''")
	}
}

// partsScript is what is wrong with the places of the graph's parts. A part that is wider than the box begins at its left.
const partsScript = `(() => {
  const box = document.querySelector('#graph').getBoundingClientRect(), wrong = [];
  const parts = [...document.querySelectorAll('#graph svg > g')].map((e) => e.getBoundingClientRect());
  parts.forEach((p, i) => {
    if (p.left < box.left || p.right > box.right && p.left > box.left + 40) wrong.push(i + ' is cut');
    if (parts.some((q, k) => k < i && p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom)) wrong.push(i + ' is on another');
  });
  const first = parts.filter((p) => p.top < parts[0].top + 30), free = box.right - Math.max(...first.map((p) => p.right));
  const below = parts.filter((p) => p.top >= parts[0].top + 30);
  if (free > Math.min(...below.map((p) => p.width)) + 60) wrong.push(Math.round(free) + ' px are empty');
  return parts.length > 3 ? wrong.join(', ') : 'few parts';
})()`

// A text of the graph is no wider than its node, in whichever script; nor does a bar hide a part of a word.
func TestPage_texts_of_the_pictures_are_whole(t *testing.T) {
	s := serve(t, nil)
	locks := append(schedulers(), mutex("/locks/wide", strings.Repeat("\U0001F512", 18), strings.Repeat("W", 18)))
	for i := range locks {
		for k := range locks[i].Contenders {
			locks[i].Contenders[k].Created = time.Now().Add(-time.Minute) // before docent began to look
		}
	}
	s.published(locks...)
	tb := visit(t, s)
	tb.await("document.querySelectorAll('#graph .node').length > 8 && document.querySelectorAll('#timeline .gap.unseen').length > 4")
	if got := get[string](tb, `JSON.stringify([...document.querySelectorAll('#graph .node')].flatMap((node) => {
	  const most = node.querySelector('rect').getBBox().width;
	  return [...node.querySelectorAll('text')].filter((e) => e.getBBox().width > most).map((e) => e.textContent);
	}))`); got != "[]" {
		t.Errorf("wider than their nodes: %s", got)
	}
	if got := get[int](tb, `[...document.querySelectorAll('#timeline .gap text')].filter((text) => {
	  const word = text.getBoundingClientRect();
	  return [...text.closest('svg > g').querySelectorAll('.bar')].some((bar) => {
	    const box = bar.getBoundingClientRect();
	    return box.left < word.right && box.right > word.left;
	  });
	}).length`); got > 0 {
		t.Errorf("bars hide parts of %d words", got)
	}
}
