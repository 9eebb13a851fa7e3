package page_test

import (
	"context"
	"errors"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

func refuseAll(context.Context, string) error { return errors.New("refused") }

// By keyboard alone: the box of a row chooses its lane of the timeline, and a button takes the choice back.
func TestPage_chooses_lanes_by_keyboard(t *testing.T) {
	s, tb := shown(t)
	s.show(mutex("/locks/a", "alice"), mutex("/locks/b", "bob"), mutex("/locks/c", "carol"))
	tb.await("document.querySelectorAll('#timeline .lane-name').length === 3")
	tb.do(chromedp.Focus("#rows tr:nth-child(2) .pick input"), chromedp.KeyEvent(" "))
	tb.await("[...document.querySelectorAll('#timeline .lane-name')].map((e) => e.lastChild.data).join() === '/locks/b'")
	s.show(mutex("/locks/a", "alice"), mutex("/locks/b", "bob", "dave"), mutex("/locks/c", "carol"))
	tb.await("document.querySelector('#rows tr:nth-child(2) td:nth-child(5)').textContent === '1'")
	if !get[bool](tb, "document.activeElement.matches('tr:nth-child(2) .pick input') && document.activeElement.checked") {
		t.Error("after an update the box has lost the focus or the choice")
	}
	s.show(mutex("/locks/a", "alice"), mutex("/locks/c", "carol")) // the lane stays
	tb.await("document.querySelectorAll('#timeline .lane-name').length === 1")
	tb.do(chromedp.Focus("#unpick"), chromedp.KeyEvent("\r"))
	tb.await("document.querySelectorAll('#timeline .lane-name').length > 1 && document.querySelector('#unpick').hidden")
	if got := get[string](tb, "document.activeElement.id"); got != "holds-toggle" {
		t.Errorf("the focus is on %q", got)
	}
}

// A lane that is chosen and has no hold is empty.
func TestPage_shows_an_empty_lane(t *testing.T) {
	s, tb := shown(t)
	waits := mutex("/locks/a", "alice", "bob")
	waits.Contenders = waits.Contenders[1:]
	s.show(waits)
	tb.do(chromedp.Click("#rows .pick input"))
	tb.await("document.querySelectorAll('#timeline .lane-name').length === 1")
}

// A fault of the page's own script is shown. The page does not go on as if it were live.
func TestPage_shows_its_own_failure(t *testing.T) {
	for name, fault := range map[string]string{
		"in a message": "Element.prototype.replaceChildren = () => { throw new Error('broken on purpose'); }",
		"elsewhere":    "addEventListener('load', () => { throw new Error('broken on purpose'); })",
		"in a promise": "addEventListener('load', () => { Promise.reject(new Error('broken on purpose')); })",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			tb := openTab(t)
			call(tb, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: fault})
			tb.do(chromedp.Navigate(s.base + "/#token=" + token))
			s.show(mutex("/locks/a", "alice"))
			tb.awaitText("#banner", "This page has failed: broken on purpose")
			tb.await("document.body.dataset.state === 'failed'")
		})
	}
}

// A browser's note that sizes are to be observed again is no failure: a busy machine gets it often.
func TestPage_goes_on_when_sizes_change_again(t *testing.T) {
	s := serve(t, nil)
	tb := openTab(t)
	call(tb, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `addEventListener('load', () =>
		dispatchEvent(new ErrorEvent('error', {message: 'ResizeObserver loop completed with undelivered notifications.'})))`})
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	s.show(mutex("/locks/a", "alice"))
	tb.awaitText("#rows", "/locks/a")
	tb.await("document.body.dataset.state === 'live'")
}

// The dot of a live page is green, and the last time of the timeline is whole.
func TestPage_pictures(t *testing.T) {
	s, tb := shown(t)
	s.show(mutex("/locks/a", "alice"))
	tb.await("document.querySelectorAll('#timeline .tick-text').length > 0")
	tb.awaitText("#figures", "1 lock\n")
	if got := get[string](tb, "getComputedStyle(document.querySelector('.dot')).backgroundColor"); got != "rgb(27, 122, 61)" {
		t.Errorf("the dot is %s", got)
	}
	// A time that is now would be centred at the end of the holder's bar.
	room := "document.querySelector('#timeline svg').getBoundingClientRect().right - document.querySelector('.bar.now').getBoundingClientRect().right" +
		" - document.querySelector('.tick-text').getBoundingClientRect().width / 2"
	if got := get[float64](tb, room); got < 0 {
		t.Errorf("the text of the last time lacks %.0f px", -got)
	}
}
