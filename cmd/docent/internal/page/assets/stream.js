// The stream of a tab: a snapshot, then numbered changes. It is read by fetch, because EventSource
// sends no header.
import { moment, since } from './text.js';

const patience = 10_000; // ms that docent has to answer
const shortest = 5_000; // ms without a byte, after which a stream is opened again

// A Stream calls on.message(event, data), on.lost(), on.refused(text), and on.failed(error) if on.message
// throws or a message can't be read.
export class Stream {
  constructor(token, on) {
    this.token = token;
    this.on = on;
    this.query = '';
    this.pause = 500;
    this.silence = shortest;
  }

  // open starts anew, with a query.
  open(query) {
    this.close();
    this.query = query;
    this.control = new AbortController();
    [this.heard, this.answered, this.late] = [moment(), false, false];
    this.read(this.control);
  }

  close() {
    clearTimeout(this.timer);
    this.control?.abort();
    this.control = undefined;
  }

  // expect says that a message comes each beat milliseconds, at most.
  expect(beat) { this.silence = Math.max(shortest, 3 * beat); }

  // check ends a stream that is silent. The page calls it every second: a timer for each wait would not
  // count the time for which the machine sleeps. It takes two checks, because what has come while the page
  // itself was too busy to read it is read between the two.
  check() {
    const late = Boolean(this.control) && since(this.heard) > (this.answered ? this.silence : patience);
    if (late && this.late) this.control.abort();
    this.late = late;
  }

  async read(control) {
    try {
      const reply = await fetch('/events?' + this.query, {
        headers: { Authorization: 'Bearer ' + this.token }, cache: 'no-store', signal: control.signal,
      });
      if (!reply.ok) {
        const text = (await reply.text()).trim();
        if (control.signal.aborted) return;
        this.on.refused(text);
        if (reply.status !== 503) return;
      } else {
        await this.messages(reply.body, control);
      }
    } catch {
      // The connection is lost, or the stream was closed.
    }
    if (this.control !== control) return;
    this.on.lost();
    this.timer = setTimeout(() => this.open(this.query), this.pause);
    this.pause = Math.min(this.pause * 2, 8000);
  }

  async messages(body, control) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '', number = 0;
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.control !== control) return;
      [this.heard, this.answered] = [moment(), true];
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      for (const part of parts) {
        if (this.control !== control) return;
        try {
          const [, event, text] = /^event: (\w+)\ndata: (.*)$/s.exec(part);
          const data = JSON.parse(text);
          if (data.n !== ++number) return; // a gap: the next stream begins with a snapshot
          this.pause = 500;
          this.on.message(event, data);
        } catch (error) {
          console.error(error);
          this.on.failed(error);
          return;
        }
      }
    }
  }
}
