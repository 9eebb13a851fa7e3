// The wait-for graph. docent has placed it; here it is drawn.
import { element, shape, set, shown, tail, unit } from './text.js';

const width = 148, height = 46; // of a node, as docent places it

// show draws the graph into a box, and its edges into a table.
export function show(box, table, note, graph) {
  table.tBodies[0].replaceChildren(...graph.edges.map((e) => element('tr', { class: e.mark },
    element('td', { class: 'name' }, label(graph.nodes[e.from])), element('td', { class: 'name' }, label(graph.nodes[e.to])),
    element('td', { class: 'name' }, e.lock), element('td', {}, { dead: 'yes', possible: 'possible' }[e.mark] ?? 'no'))));
  set(note, graph.more ? `and ${graph.more} more waiters` : '');
  if (graph.nodes.length === 0) {
    box.replaceChildren(element('p', { class: 'empty' }, 'Nobody waits.'));
    return;
  }
  const dead = graph.nodes.filter((n) => n.mark === 'dead').length;
  const text = `${graph.nodes.length} parties, ${graph.edges.length} waits` + (dead ? `, ${dead} in a deadlock` : '');
  const svg = shape('svg', { role: 'img', tabindex: 0, 'aria-labelledby': 'graph-title graph-desc' },
    shape('title', { id: 'graph-title' }, 'Wait-for graph'), shape('desc', { id: 'graph-desc' }, text + '. The table has the same edges.'),
    shape('defs', {}, marker('arrow', ''), marker('arrow-dead', 'dead'), marker('arrow-possible', 'possible')));
  const parts = [];
  const part = (n) => parts[n.part] ??= svg.appendChild(shape('g'));
  for (const e of graph.edges) part(graph.nodes[e.from]).append(edge(e));
  for (const n of graph.nodes) part(n).append(node(n));
  const focused = box.contains(document.activeElement);
  box.replaceChildren(svg);
  fitNames(svg);
  if (focused) svg.focus({ preventScroll: true });
  lens.show(svg, parts);
  // The rest of the message may change the box: a change back to the last size is none for its observer.
  requestAnimationFrame(() => lens.chosen || lens.fit());
}

// A lens shows a part of the picture: all of it if its letters, of 12 units, are at least as large then as
// the browser's font has them, until the user moves or zooms.
const least = 0.3, greatest = 2.5; // units of the browser's font per unit of the picture

class Lens {
  // show puts another picture under the lens.
  show(svg, parts) {
    [this.svg, this.parts] = [svg, parts];
    this.resize();
  }

  // resize takes the picture's box as it is now.
  resize() {
    if (!this.chosen) return this.fit();
    pack(this.parts, this.room);
    this.apply();
  }

  fit() {
    const { clientWidth: w, clientHeight: h } = this.svg;
    this.room = (w || 640) / unit();
    [this.width, this.height] = pack(this.parts, this.room);
    this.scale = unit() * Math.min(1.15, Math.max(1, Math.min((w || 640) / this.width, (h || 480) / this.height) / unit()));
    this.x = this.y = 0; // what matters most is there
    if (this.width * this.scale < w) this.x = (this.width - w / this.scale) / 2;
    if (this.height * this.scale < h) this.y = (this.height - h / this.scale) / 2;
    this.chosen = false;
    this.apply();
  }

  move(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.chosen = true;
    this.apply();
  }

  // zoom zooms around a point of the picture's box, its middle if there is none.
  zoom(factor, px = this.svg.clientWidth / 2, py = this.svg.clientHeight / 2) {
    const scale = unit() * Math.min(greatest, Math.max(least, this.scale * factor / unit()));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.chosen = true;
    this.apply();
  }

  apply() {
    const { clientWidth: w, clientHeight: h } = this.svg;
    if (w && h) this.svg.setAttribute('viewBox', `${this.x} ${this.y} ${w / this.scale} ${h / this.scale}`);
  }
}
const lens = new Lens();

// pack moves the parts of the picture side by side, each as high as there is room for it, the first one first. It
// returns the size.
function pack(parts, room) {
  const gap = 26, placed = [];
  for (const [i, box] of parts.map((part) => part.getBBox()).entries()) { // measured first: the browser lays them out once
    const [w, h] = [box.width + gap, box.height + gap];
    const top = (x) => Math.max(gap / 2, ...placed.filter((p) => p.x < x + w && x < p.x + p.w).map((p) => p.y + p.h));
    const places = [gap / 2, ...placed.map((p) => p.x + p.w).filter((x) => x + w - gap / 2 <= room)].map((x) => ({ x, y: top(x), w, h }));
    const best = places.reduce((a, b) => b.y < a.y || b.y === a.y && b.x < a.x ? b : a);
    placed.push(best);
    parts[i].setAttribute('transform', `translate(${best.x - box.x} ${best.y - box.y})`);
  }
  return [Math.max(...placed.map((p) => p.x + p.w - gap / 2)), Math.max(...placed.map((p) => p.y + p.h - gap / 2))];
}

// control has the pointer, the keys and the buttons move the picture in the box.
export function control(box, buttons) {
  let from;
  box.addEventListener('pointerdown', (e) => { from = [e.clientX, e.clientY]; });
  box.addEventListener('pointermove', (e) => {
    if (!from || !(e.buttons & 1)) return;
    box.setPointerCapture(e.pointerId);
    lens.move(from[0] - e.clientX, from[1] - e.clientY);
    from = [e.clientX, e.clientY];
  });
  box.addEventListener('pointerup', () => { from = undefined; });
  box.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.metaKey) return; // else the page scrolls
    e.preventDefault();
    const at = box.getBoundingClientRect();
    lens.zoom(Math.exp(-e.deltaY / 300), e.clientX - at.left, e.clientY - at.top);
  }, { passive: false });
  const keys = {
    ArrowLeft: () => lens.move(-60, 0), ArrowRight: () => lens.move(60, 0), ArrowUp: () => lens.move(0, -60), ArrowDown: () => lens.move(0, 60),
    '+': () => lens.zoom(1.25), '-': () => lens.zoom(0.8), 0: () => lens.fit(),
  };
  box.addEventListener('keydown', (e) => {
    if (!keys[e.key] || !lens.svg || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  for (const [name, button] of Object.entries(buttons)) {
    button.addEventListener('click', () => lens.svg && { in: () => lens.zoom(1.25), out: () => lens.zoom(0.8), fit: () => lens.fit() }[name]());
  }
  new ResizeObserver(() => { if (lens.svg) lens.resize(); }).observe(box);
}

function marker(id, kind) {
  return shape('marker', { id, class: kind, viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' },
    shape('path', { d: 'M0 0L10 5L0 10z' }));
}

function edge(e) {
  const [a, b, c, d] = e.curve.map((p) => `${p.X} ${p.Y}`);
  return shape('g', { class: `edge ${e.mark ?? ''} ${e.direct ? '' : 'soft'}` },
    shape('title', {}, e.lock),
    shape('path', { d: `M${a}C${b} ${c} ${d}`, 'marker-end': `url(#arrow${e.mark ? '-' + e.mark : ''})` }),
    ...(e.label ? labelOf(e) : []));
}

// labelOf returns the label, on a ground that hides what is below it.
function labelOf(e) {
  const text = short(e.label, 20), half = Array.from(text).length * 3.65 + 2;
  return [shape('rect', { x: e.text.X - half, y: e.text.Y - 7, width: 2 * half, height: 14 }), shape('text', { x: e.text.X, y: e.text.Y + 4 }, text)];
}

function node(n) {
  const kind = n.mark ?? (n.crowd ? 'crowd' : n.waiting ? 'waiter' : 'holder');
  const word = { dead: 'deadlock', possible: 'possible' }[n.mark] ?? (n.waiting ? 'waits' : 'holds');
  const sub = n.session ? `${n.by === 'unknown' ? word : n.by} · ${tail(n.session)}` : n.owner ? `${word} · ${n.name}` : word;
  return shape('g', { class: `node ${kind}`, transform: `translate(${n.x} ${n.y})` },
    shape('title', {}, `${label(n)}: ${word}`),
    shape('rect', { width, height, rx: n.waiting && !n.mark ? 4 : 14 }),
    shape('text', { class: 'title', x: width / 2, y: n.crowd ? 28 : 20 }, short(n.owner || n.name, 18)),
    n.crowd ? '' : shape('text', { class: 'sub', x: width / 2, y: 36 }, short(sub, 24)));
}

// fitNames cuts what is wider than its node, which depends on the font and the script. All are measured before one
// is cut: the browser lays the picture out once.
function fitNames(svg) {
  const texts = [...svg.querySelectorAll('.node text')], most = width - 12;
  const wide = texts.map((text) => [text, text.getComputedTextLength()]).filter(([, length]) => length > most);
  for (const [text, length] of wide) {
    const letters = Array.from(text.textContent);
    set(text, cut(letters, Math.floor(letters.length * most / length)));
  }
}

function label(n) { return [n.name, n.owner, n.session && `session ${n.session}`].filter(Boolean).join(' '); }

// short shows the text in so many letters, at most.
function short(text, most) { return cut(Array.from(shown(text)), most); }

// cut cuts the letters in their middle, where names differ least.
function cut(letters, most) {
  if (letters.length <= most) return letters.join('');
  const half = Math.floor((most - 1) / 2);
  return letters.slice(0, most - 1 - half).join('') + '…' + letters.slice(-half).join('');
}
