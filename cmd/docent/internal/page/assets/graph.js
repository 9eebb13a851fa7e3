// The wait-for graph. docent has placed it; here it is drawn.
import { element, shape, set, shown, base } from './text.js';

const width = 148, height = 46; // of a node, as docent places it

// show draws the graph into a box, and its edges into a table.
export function show(box, table, note, graph) {
  table.tBodies[0].replaceChildren(...graph.edges.map((e) => element('tr', { class: mark(e) },
    element('td', { class: 'name' }, label(graph.nodes[e.from])), element('td', { class: 'name' }, label(graph.nodes[e.to])),
    element('td', { class: 'name' }, e.lock), element('td', {}, e.dead ? 'yes' : e.possible ? 'possible' : 'no'))));
  set(note, graph.more ? `and ${graph.more} more waiters` : '');
  if (graph.nodes.length === 0) {
    box.replaceChildren(element('p', { class: 'empty' }, 'Nobody waits.'));
    return;
  }
  const dead = graph.nodes.filter((n) => n.dead).length;
  const text = `${graph.nodes.length} parties, ${graph.edges.length} waits` + (dead ? `, ${dead} in a deadlock` : '');
  const svg = shape('svg', {
    viewBox: `0 0 ${graph.width} ${graph.height}`, width: graph.width, height: graph.height, role: 'img', 'aria-labelledby': 'graph-title graph-desc',
  }, shape('title', { id: 'graph-title' }, 'Wait-for graph'), shape('desc', { id: 'graph-desc' }, text + '. The table has the same edges.'),
  shape('defs', {}, marker('arrow', ''), marker('arrow-dead', 'dead')));
  const named = new Set(); // one text for the edges of a waiter at one lock, which are close together
  for (const e of graph.edges) {
    const wait = `${e.from} ${e.lock}`;
    svg.append(edge(e, named.has(wait) ? '' : short(base(e.lock), 20)));
    named.add(wait);
  }
  for (const n of graph.nodes) svg.append(node(n));
  box.replaceChildren(svg);
}

function mark(part) { return part.dead ? 'dead' : part.possible ? 'possible' : ''; }

function marker(id, kind) {
  return shape('marker', { id, class: kind, viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' },
    shape('path', { d: 'M0 0L10 5L0 10z' }));
}

function edge(e, text) {
  const [a, b, c, d] = e.curve.map((p) => `${p.X} ${p.Y}`);
  return shape('g', { class: `edge ${mark(e)} ${e.direct ? '' : 'soft'}` },
    shape('title', {}, e.lock),
    shape('path', { d: `M${a}C${b} ${c} ${d}`, 'marker-end': `url(#arrow${e.dead ? '-dead' : ''})` }),
    shape('text', { x: e.text.X, y: e.text.Y + 4 }, text));
}

function node(n) {
  const kind = mark(n) || (n.waiting ? 'waiter' : 'holder');
  const word = n.dead ? 'deadlock' : n.possible ? 'possible deadlock' : n.waiting ? 'waits' : 'holds';
  return shape('g', { class: `node ${kind}`, transform: `translate(${n.x} ${n.y})` },
    shape('title', {}, label(n)),
    shape('rect', { width, height, rx: n.waiting && !n.dead && !n.possible ? 4 : 14 }),
    shape('text', { class: 'title', x: width / 2, y: 20 }, short(n.owner || n.name, 18)),
    shape('text', { class: 'sub', x: width / 2, y: 36 }, short(n.owner ? `${word} · ${n.name}` : word, 24)));
}

function label(n) { return n.owner ? `${n.name} ${n.owner}` : n.name; }

// short cuts the text in its middle, where names differ least.
function short(text, most) {
  const safe = Array.from(shown(text));
  if (safe.length <= most) return safe.join('');
  const half = Math.floor((most - 1) / 2);
  return safe.slice(0, most - 1 - half).join('') + '…' + safe.slice(-half).join('');
}
