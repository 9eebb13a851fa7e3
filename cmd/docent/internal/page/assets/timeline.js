// Holds of the last minutes: a lane per lock, a bar per hold.
import { element, shape, set, shown, clock, stamp, zone, age, many, unit } from './text.js';

const laneHeight = 27, barHeight = 19, axis = 22;
const tail = 32; // right of the last bar: half a tick's text
const mostRows = 5; // of a lane, for holds at the same time
const blur = 500; // ms by which the end of a hold may be seen too late
const longest = 10 * 60_000, shortest = 60_000; // ms that the axis has

// show draws the lanes into a box, as of a moment.
export function show(box, lanes, now) {
  if (lanes.length === 0) {
    box.replaceChildren(element('p', { class: 'empty' }, 'No lock was held.'));
    return;
  }
  const one = unit();
  const full = Math.max(200, box.clientWidth / one);
  const names = Math.min(220, full * 0.3);
  const first = Math.min(now, ...lanes.flatMap((l) => [...l.holds.map((h) => h.from), l.left?.from ?? now]));
  const span = Math.min(longest, Math.max(shortest, (now - first) * 1.02));
  const x = (ms) => names + (full - names - tail) * Math.max(0, Math.min(1, (ms - now + span) / span));
  const view = { full, names, now, span, x };
  const drawn = [];
  let y = 0;
  for (const lane of lanes) {
    const rows = pack(lane.holds.filter((h) => !h.to || h.to > now - span));
    drawn.push(drawLane(lane, rows, y, view));
    y += height(rows.length);
  }
  const svg = shape('svg', { viewBox: `0 0 ${full} ${y + axis}`, height: (y + axis) * one, role: 'img', 'aria-label': `Holds of ${lanes.length} locks. The table has the same holds.` },
    shape('defs', {}, hatch('hatch-unseen', 7), hatch('hatch-left', 4)),
    shape('text', { class: 'tick-text', x: 0, y: y + axis - 5 }, zone(now)));
  for (const at of ticks(now, span, Math.max(2, Math.floor((full - names) / 90)))) {
    svg.append(shape('line', { class: 'tick', x1: x(at), x2: x(at), y1: 0, y2: y + 4 }),
      shape('text', { class: 'tick-text', x: x(at), y: y + axis - 5, 'text-anchor': 'middle' }, clock(at)));
  }
  svg.append(...drawn);
  box.replaceChildren(svg);
}

function hatch(id, step) {
  return shape('pattern', { id, width: step, height: step, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    shape('line', { x1: 0, x2: 0, y1: 0, y2: step }));
}

// pack puts holds at the same time into different rows, as few as it can, and most at most.
function pack(holds) {
  const rows = [];
  for (const h of holds) {
    let row = rows.find((r) => r.at(-1).to && r.at(-1).to - blur <= h.from);
    if (!row) rows.length < mostRows ? rows.push(row = []) : row = rows.at(-1);
    row.push(h);
  }
  return rows.length ? rows : [[]];
}

// height returns that of a lane. Several rows are thinner.
function height(rows) { return rows === 1 ? laneHeight : 8 + rows * 15; }

function ticks(now, span, most) {
  const step = [10, 15, 30, 60, 120].map((s) => s * 1000).find((ms) => span / ms <= Math.min(7, most)) ?? 300_000;
  const found = [];
  for (let at = Math.ceil((now - span) / step) * step; at < now; at += step) if (at > now - span * 0.99) found.push(at);
  return found;
}

function drawLane(lane, rows, y, view) {
  const fit = Math.floor((view.names - 10) / 7.3);
  const path = shown(lane.path);
  const end = y + height(rows.length) - .5;
  const group = shape('g', {},
    shape('line', { class: 'lane-line', x1: 0, x2: view.full, y1: end, y2: end }),
    shape('text', { class: 'lane-name', x: 0, y: y + 17 }, shape('title', {}, lane.path), path.length > fit ? '…' + path.slice(1 - fit) : path),
    ...gaps(lane).map((gap) => drawGap(gap, lane, y + 4, end - y - 7, view)));
  const thick = rows.length === 1 ? barHeight : 13;
  rows.forEach((row, i) => group.append(...row.map((h) => drawBar(h, y + 4 + i * 15, thick, view))));
  return group;
}

// gaps returns the times for which the lane has no bars although the lock may have been held.
function gaps(lane) {
  const all = (lane.unseen ?? []).map((span) => ({ ...span, kind: 'unseen', text: 'not seen' }));
  if (lane.left) all.push({ ...lane.left, kind: 'left', text: `${many(lane.more, 'hold', 'holds')}, not drawn` });
  return all;
}

// limits says when a gap began and ended.
function limits(gap, now) {
  return [gap.from ? 'from ' + stamp(gap.from, now) : '', gap.to ? 'until ' + stamp(gap.to, now) : 'until now'].filter(Boolean).join(' ');
}

function drawGap(gap, lane, y, thick, view) {
  const from = view.x(gap.from), size = view.x(gap.to || view.now) - from;
  if (size <= 0) return '';
  const drawn = shape('g', { class: `gap ${gap.kind}` }, shape('title', {}, `${gap.text} ${limits(gap, view.now)}`),
    shape('rect', { x: from, y, width: Math.max(1.5, size), height: thick, fill: `url(#hatch-${gap.kind})` }));
  const wide = gap.text.length * 6.6 + 8;
  const covered = lane.holds.some((h) => view.x(h.from) < from + 8 + wide && view.x(h.to || view.now) > from);
  if (size > wide + 8 && !covered) { // half a word under a bar says nothing
    drawn.append(shape('g', {}, shape('rect', { class: 'ground', x: from + 4, y: y + thick / 2 - 8, width: wide, height: 16 }),
      shape('text', { x: from + 8, y: y + thick / 2 + 4 }, gap.text)));
  }
  return drawn;
}

function drawBar(h, y, thick, view) {
  const from = view.x(h.from), size = Math.max(1.5, view.x(h.to || view.now) - from - 1);
  const kind = `${h.to ? '' : 'now'} ${h.unsure ? 'unsure' : ''}`;
  const bar = shape('g', {},
    shape('title', {}, `${h.name}${h.owner ? ' ' + h.owner : ''}, ${stamp(h.from, view.now)} to ${h.to ? stamp(h.to, view.now) : 'now'} (${age((h.to || view.now) - h.from)})`),
    shape('rect', { class: `bar ${kind}`, x: from, y, width: size, height: thick, rx: Math.min(4, size / 2) }));
  const text = shown(h.owner || h.name), letters = Math.floor((size - 10) / 7.3);
  if (letters >= Math.min(text.length, 5)) {
    bar.append(shape('text', { class: `bar-text ${kind}`, x: from + 6, y: y + thick / 2 + 4 }, text.length > letters ? text.slice(0, letters - 1) + '…' : text));
  }
  return bar;
}

// list fills the table of the same holds, and of the times that lack some.
export function list(table, note, lanes, now) {
  const row = (lane, who, from, to) => element('tr', {}, element('td', { class: 'name' }, lane.path), element('td', { class: 'name' }, who), element('td', {}, from), element('td', {}, to));
  table.tBodies[0].replaceChildren(...lanes.flatMap((lane) => [
    ...gaps(lane).map((gap) => row(lane, gap.text, gap.from ? stamp(gap.from, now) : '–', gap.to ? stamp(gap.to, now) : 'now')),
    ...lane.holds.map((h) => row(lane, h.owner ? `${h.name} ${h.owner}` : h.name, (h.before ? 'before ' : '') + stamp(h.from, now), h.to ? stamp(h.to, now) + (h.unsure ? ', or earlier' : '') : 'now')),
  ]));
  const more = lanes.reduce((n, lane) => n + (lane.more ?? 0), 0);
  set(note, [more && `${many(more, 'older hold is', 'older holds are')} not drawn: the dense hatching.`,
    lanes.some((lane) => gaps(lane).some((gap) => gap.kind === 'unseen' && (gap.to || now) > now - longest)) && 'Wide hatching: docent did not see the locks.'].filter(Boolean).join(' '));
}
