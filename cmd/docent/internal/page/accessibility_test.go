package page_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/page"
)

// busyPage opens a page that shows all it has: a deadlock, a queue, lanes, both tables and both pictures.
func busyPage(t *testing.T) *tab {
	t.Helper()
	s := serve(t, func(c *page.Config) { c.Revoke = refuseAll })
	tb := visit(t, s)
	s.show(mutex("/locks/a", "alice", "bob"), mutex("/locks/b", "bob", "alice"), mutex("/locks/c", "carol", "dave"))
	tb.awaitText("#findings", "deadlock")
	tb.do(chromedp.Click("#rows .path"))
	tb.awaitText("#contenders", "bob")
	for _, button := range []string{"#graph-toggle", "#holds-toggle"} {
		tb.do(chromedp.Click(button))
	}
	tb.await("document.querySelector('#graph-table td') && document.querySelector('#holds-table td')")
	get[bool](tb, "document.querySelector('#graph').hidden = document.querySelector('#timeline').hidden = false")
	tb.await("document.querySelectorAll('svg').length === 2")
	return tb
}

// Tables have captions and header cells with a scope. The summary is the only live region.
func TestPage_structure(t *testing.T) {
	tb := busyPage(t)
	for what, selector := range map[string]string{
		"tables without a caption":      "table:not(:has(> caption))",
		"header cells without a scope":  "th:not([scope])",
		"regions without a name":        "[role=region]:not([aria-label]), section:not([aria-label]):not([aria-labelledby])",
		"live regions but the summary":  "[aria-live]:not(#spoken), [role=status], [role=alert], [role=log]",
		"pictures without a text":       "svg:not([aria-label]):not([aria-labelledby])",
		"positive tab indexes":          "[tabindex]:not([tabindex='0']):not([tabindex='-1'])",
		"inputs without a label":        "input:not([aria-label]):not([id])",
		"links that lead out":           "a[href]:not([href^='#'])",
		"elements with inline handlers": "[onclick], [onload], [onerror]",
	} {
		if n := get[int](tb, fmt.Sprintf("document.querySelectorAll(%q).length", selector)); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if n := get[int](tb, "document.querySelectorAll('#spoken[aria-live=polite]').length"); n != 1 {
		t.Error("the summary is no live region")
	}
	if ids := get[int](tb, "(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size; })()"); ids != 0 {
		t.Errorf("%d ids are given twice", ids)
	}
}

// contrastScript returns the texts whose contrast is less than 4.5 : 1, and the number of texts that it has seen.
const contrastScript = `(() => {
  const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); return { rgb: n.slice(0, 3), a: n[3] ?? 1 }; };
  const over = (top, under) => top.rgb.map((v, i) => v * top.a + under[i] * (1 - top.a));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (node) => {
    if (!node) return parse(getComputedStyle(document.documentElement).backgroundColor).rgb;
    const own = parse(getComputedStyle(node).backgroundColor);
    return own.a === 0 ? ground(node.parentElement) : over(own, own.a === 1 ? [0, 0, 0] : ground(node.parentElement));
  };
  const weak = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement, box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (!text.data.trim() || !box.width || style.visibility === 'hidden' || node.closest('.spoken, title, desc, script, noscript')) continue;
    seen++;
    const svg = node instanceof SVGElement, rect = svg && [...node.parentElement.children].find((e) => e.tagName === 'rect');
    const under = rect ? parse(getComputedStyle(rect).fill).rgb : ground(svg ? node.closest('svg').parentElement : node);
    const [a, b] = [light(over(parse(svg ? style.fill : style.color), under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) weak.push(text.data.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return JSON.stringify({ seen, weak });
})()`

// Tab reaches every control, in the order of the page, and the focus can be seen.
func TestPage_focus_order(t *testing.T) {
	tb := busyPage(t)
	get[bool](tb, `(() => {
	  const skip = document.querySelector('.skip');
	  skip.focus();
	  window.reached = [skip];
	  window.shape = [];
	  document.addEventListener('focusin', (e) => {
	    window.reached.push(e.target);
	    if (getComputedStyle(e.target).outlineStyle === 'none') {
	      window.shape.push(e.target.outerHTML.slice(0, 80) + ' (the page has the focus: ' + document.hasFocus() + ')');
	    }
	  });
	  return true;
	})()`)
	controls := get[int](tb, "(window.controls = [...document.querySelectorAll('button, input, summary, a')].filter((e) => e.checkVisibility() && !e.closest('dialog'))).length")
	for range controls + 10 { // regions that scroll are reached, too
		tb.do(chromedp.KeyEvent("\t"))
	}
	if missed := get[string](tb, "controls.filter((c) => !reached.includes(c)).map((c) => c.outerHTML.slice(0, 80)).join(' ')"); missed != "" || controls < 10 {
		t.Errorf("of %d controls Tab does not reach %s", controls, missed)
	}
	first := "reached.slice(0, new Set(reached).size)" // before Tab begins again
	if n := get[int](tb, first+".filter((e, i, all) => i > 0 && !(all[i - 1].compareDocumentPosition(e) & 4)).length"); n != 0 {
		t.Errorf("%d times Tab goes back", n)
	}
	if unseen := get[string](tb, "shape.join(' ')"); unseen != "" {
		t.Errorf("no outline: %s", unseen)
	}
}
