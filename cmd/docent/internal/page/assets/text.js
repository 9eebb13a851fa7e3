// What comes from znodes is foreign. It reaches the page through these functions, as text.

const limit = 512;
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u{2800}]|\p{Cs}/gu;

// shown returns foreign text with its control and direction characters spelled out.
export function shown(text) {
  const characters = Array.from(String(text));
  const cut = characters.length > limit ? characters.slice(0, limit).join('') + '…' : characters.join('');
  return cut.replace(hidden, (c) => {
    const code = c.codePointAt(0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : '\\u' + code.padStart(4, '0');
  });
}

// element returns an HTML element. Children are elements, or text.
export function element(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

// shape returns an element of SVG.
export function shape(name, properties = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), properties, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value);
  }
  for (const child of children) node.append(child instanceof Node ? child : shown(child));
  return node;
}

// set changes the text of an element, only if it differs.
export function set(node, text) {
  const safe = shown(text);
  if (node.textContent !== safe) node.textContent = safe;
}

// age returns milliseconds as "4m12s", in two units, and from 100 days on in one.
export function age(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m}m${String(s % 60).padStart(2, '0')}s`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h}h${String(m % 60).padStart(2, '0')}m`;
  const d = Math.floor(h / 24);
  return d < 100 ? `${d}d${h % 24}h` : `${d}d`;
}

// clock returns a time of day in the browser's zone, which zone names.
export function clock(ms) {
  const d = new Date(ms);
  return [d.getHours(), d.getMinutes(), d.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':');
}

const zoned = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' });

// zone returns the name of the browser's zone at a time, as in "UTC".
export function zone(ms) { return zoned.formatToParts(ms).find((part) => part.type === 'timeZoneName').value; }

const dated = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

// stamp returns a time with its zone, and with its day if that is not the day of now.
export function stamp(ms, now) {
  const time = `${clock(ms)} ${zone(ms)}`;
  return dated.format(ms) === dated.format(now) ? time : `${dated.format(ms)} ${time}`;
}

// moment returns the present moment by two clocks of the browser. since returns the milliseconds that have
// passed since one: the first clock counts the time for which the machine sleeps, and nobody sets the other.
export function moment() { return { wall: Date.now(), run: performance.now() }; }
export function since(m) { return Math.max(Date.now() - m.wall, performance.now() - m.run); }

// many returns a number with its word.
export function many(n, one, more) { return `${n.toLocaleString('en')} ${n === 1 ? one : more}`; }

// tail returns the end of a session's id, where ids differ.
export function tail(session) { return session.length > 10 ? '…' + session.slice(-8) : session; }

// unit returns the pixels of a unit of a picture, which grows with the browser's font.
export function unit() { return parseFloat(getComputedStyle(document.documentElement).fontSize) / 15; }
