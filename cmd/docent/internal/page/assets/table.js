// The tables of locks and of the contenders of one lock.
import { element, set, age, shown, stamp, tail } from './text.js';

// A Table keeps a row per lock. Rows don't move under the pointer or the focus. It calls on.open(path)
// and on.pick(path). picked has the paths that are chosen for the timeline.
export class Table {
  constructor(table, picked, on) {
    this.body = table.tBodies[0];
    this.picked = picked;
    this.on = on;
    this.rows = new Map(); // by path: {data, tr}
    this.order = [];
    table.addEventListener('pointerleave', () => this.arrange());
    table.addEventListener('focusout', () => setTimeout(() => this.arrange()));
  }

  // apply takes the rows that have changed, and the order of all if that has. A change to another query moves rows in
  // any case.
  apply(changed, order, opened, anew) {
    this.opened = opened;
    for (const data of changed) {
      const row = this.rows.get(data.path) ?? this.add(data);
      row.data = data;
      this.show(row);
    }
    if (order) this.order = order;
    this.markAll();
    this.arrange(anew);
  }

  markAll() {
    for (const row of this.rows.values()) this.mark(row);
  }

  add(data) {
    const path = element('button', { type: 'button', class: 'path', title: shown(data.path) }, data.path);
    const pick = element('input', { type: 'checkbox', 'aria-label': 'Show in the timeline: ' + shown(data.path) });
    const tag = element('span', { class: 'tag', hidden: '' });
    const row = {
      data, path, pick, tag,
      kind: element('td', { class: 'kind' }), holders: element('div'),
      since: element('td', { class: 'number since' }), waiting: element('td', { class: 'number' }), longest: element('td', { class: 'number longest' }),
      kindBelow: element('span', { class: 'below kind-below' }), sinceBelow: element('span', { class: 'below since-below' }), // if the columns have no place
    };
    row.tr = element('tr', {}, element('td', {}, path, row.kindBelow, tag), row.kind, element('td', {}, row.holders, row.sinceBelow),
      row.since, row.waiting, row.longest, element('td', { class: 'pick' }, pick));
    path.addEventListener('click', () => this.on.open(data.path));
    pick.addEventListener('change', () => this.on.pick(data.path));
    this.rows.set(data.path, row);
    return row;
  }

  show(row) {
    const { data } = row;
    const kind = data.permits > 1 || data.kind === 'semaphore' && data.permits ? `${data.kind} of ${data.permits}` : data.kind || '?';
    set(row.kind, kind);
    set(row.kindBelow, kind);
    row.holders.replaceChildren(...holders(data));
    row.since.dataset.since = row.sinceBelow.dataset.since = data.since || '';
    set(row.waiting, data.waiting ? data.waiting.toLocaleString('en') : '–');
    row.waiting.classList.toggle('waits', data.waiting > 0);
    row.longest.dataset.since = data.longest || '';
    row.tag.hidden = !data.mark;
    row.tag.className = `tag ${data.mark}`;
    set(row.tag, data.mark === 'dead' ? 'deadlock' : 'possible deadlock');
  }

  mark(row) {
    const open = row.data.path === this.opened;
    row.tr.className = [row.data.mark, open && 'open'].filter(Boolean).join(' ');
    row.path.setAttribute('aria-expanded', open);
    row.pick.checked = this.picked.has(row.data.path);
  }

  // arrange puts the rows in order, unless somebody is at one of them.
  arrange(anew) {
    const wanted = new Set(this.order);
    const focused = document.activeElement;
    const busy = anew !== true && (this.body.matches(':hover') || this.body.contains(document.activeElement));
    for (const [path, row] of this.rows) {
      if (wanted.has(path)) continue;
      if (busy && row.tr.isConnected) {
        row.tr.classList.add('gone');
        continue;
      }
      row.tr.remove();
      this.rows.delete(path);
    }
    let before = this.body.firstElementChild;
    for (const path of this.order) {
      const row = this.rows.get(path);
      if (!row) continue;
      if (busy && row.tr.isConnected) continue;
      if (busy) {
        this.body.append(row.tr);
      } else if (row.tr === before) {
        before = before.nextElementSibling;
      } else {
        this.body.insertBefore(row.tr, before);
      }
    }
    if (focused !== document.activeElement && focused.isConnected) focused.focus();
  }
}

function holders(data) {
  const last = (data.runs ?? []).map((run) => element('div', { class: 'small' }, `${run.state}: ${stamp(run.slot, Date.now())}, ${run.name}`));
  const nobody = data.unknown ? 'unknown: the data are not a schedule’s' : data.kind === 'schedule' ? 'nobody' : data.waiting ? 'between holders' : 'unknown';
  if (!data.holders?.length) return [element('span', { class: 'free' }, nobody), ...last];
  const lines = data.holders.map((who) => element('div', { class: 'who-line' }, ...person(who))).concat(last);
  if (data.held > data.holders.length) lines.push(element('div', { class: 'small' }, `and ${data.held - data.holders.length} more`));
  return lines;
}

// person returns a contender's name and owner. Curator and kazoo show an address at most, which all their
// clients on a host have: the session tells them apart, and the attempt their threads.
export function person(who, whole) {
  const parts = [element('span', { class: 'name', title: shown(who.name) }, who.name)];
  if (who.owner) parts.push(element('span', { class: 'owner', title: shown(who.owner) }, who.owner));
  const foreign = who.attempt && who.by !== 'docent';
  const by = foreign && who.by !== 'unknown' ? `${who.by} · ` : '';
  if (foreign || whole) parts.push(element('span', { class: 'owner id', title: `library, session ${who.session}` }, by + (whole ? who.session : tail(who.session))));
  if (who.attempt && whole) parts.push(element('span', { class: 'owner id', title: 'attempt of a thread' }, who.attempt));
  return parts;
}

// showQueue fills the table of contenders. ask is called with a holder, undefined if the page may not ask.
// unfold is called for the contenders between the head and the tail.
export function showQueue(table, queue, ask, unfold) {
  const body = table.tBodies[0];
  const focused = document.activeElement?.dataset?.znode;
  const tail = queue.tail ?? [];
  const rows = queue.contenders.map((who, i) => contender(who, i, ask));
  if (queue.more) {
    const button = element('button', { type: 'button', 'data-znode': 'more' }, `+${queue.more.toLocaleString('en')}`);
    if (tail.length) button.addEventListener('click', unfold);
    else button.disabled = true;
    rows.push(element('tr', { class: 'folded' }, element('td', { class: 'number' }, '…'), element('td', { colspan: 3 }, button,
      tail.length ? ' between the head and the tail of the queue' : ' more')));
  }
  rows.push(...tail.map((who, i) => contender(who, queue.total - tail.length + i, ask)));
  rows.push(...(queue.runs ?? []).map(ran));
  body.replaceChildren(...rows);
  if (focused) body.querySelector(`[data-znode="${CSS.escape(focused)}"]`)?.focus();
}

// ran returns the row of a schedule's run.
function ran(run) {
  const now = Date.now();
  const to = run.to ? ` to ${stamp(run.to, now)}` : '';
  return element('tr', {}, element('td', { class: 'number' }), element('td', { class: 'small' }, run.state),
    element('td', {}, element('div', { class: 'who-line' }, element('span', { class: 'name', title: shown(run.name) }, run.name)),
      element('div', { class: 'small' }, `slot ${stamp(run.slot, now)}, from ${stamp(run.from, now)}${to}`)),
    element('td', { class: 'number' }));
}

function contender(who, place, ask) {
  const cell = element('td', {}, element('div', { class: 'who-line' }, ...person(who, true), element('span', { class: 'owner id' }, `fence ${who.fence}`)));
  if (ask && who.state === 'holds' && !who.revoked) {
    const button = element('button', { type: 'button', class: 'danger', 'data-znode': who.znode }, 'Ask to release');
    button.addEventListener('click', () => ask(who));
    cell.append(element('div', { class: 'ask' }, button));
  }
  return element('tr', {},
    element('td', { class: 'number' }, place.toLocaleString('en')),
    element('td', { class: `small state-${who.state}` }, who.state + (who.side === 'exclusive' ? '' : ` · ${who.side}`) + (who.revoked ? ', asked to release' : '')),
    cell,
    element('td', { class: 'number', 'data-since': who.since || '' }));
}

// tick shows ages, at a moment.
export function tick(now) {
  for (const node of document.querySelectorAll('[data-since]')) {
    set(node, node.dataset.since ? age(now - Number(node.dataset.since)) : '–');
  }
}
