// The page: what it asks for, and what it shows of the answers.
import { element, set, clock, many } from './text.js';
import { Stream } from './stream.js';
import { Table, showQueue, tick } from './table.js';
import * as graph from './graph.js';
import * as timeline from './timeline.js';

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
const ask = { find: '', waiting: false, sort: 'lock', desc: false, open: '', pick: new Set() };
const has = { summary: undefined, lanes: [], offset: 0, lost: 0, paused: false, refused: '', failed: '' };
const mostLanes = 24; // that a stream may ask for

const table = new Table($('rows'), ask.pick, {
  open(path) {
    ask.open = ask.open === path ? '' : path;
    reopen();
  },
  pick(path) {
    ask.pick.delete(path) || ask.pick.size < mostLanes && ask.pick.add(path);
    repick();
  },
});
const stream = new Stream(token, {
  message(event, data) {
    has.offset = data.now - Date.now();
    has.lost = 0;
    has.refused = '';
    apply(data, event === 'snapshot');
  },
  lost() {
    has.lost ||= now();
    showState();
  },
  refused(text) {
    has.refused = text;
    showState();
  },
  failed: fail,
});

// fail shows a fault of the page itself. It does not ask again, because the fault would come again.
function fail(error) {
  has.failed ||= String(error?.message ?? error);
  stream.close();
  showState();
}
addEventListener('error', (e) => fail(e.error ?? e.message));
addEventListener('unhandledrejection', (e) => fail(e.reason));

// now returns the time by docent's clock.
function now() { return Date.now() + has.offset; }

// viewed returns the time that the page shows: now, or when the view was if it is not live.
function viewed() {
  if (has.lost) return has.lost;
  return has.summary?.state === 'stale' ? has.summary.at : now();
}

function apply(data, anew) {
  if (data.summary) has.summary = data.summary;
  if (data.rows) table.apply(data.rows, ask.open, anew);
  if (data.findings) showFindings(data.findings);
  if (data.graph) graph.show($('graph'), $('graph-table').firstElementChild, $('graph-note'), data.graph);
  if (data.holds) {
    has.lanes = data.holds;
    timeline.list($('holds-table').firstElementChild, $('holds-note'), has.lanes);
  }
  if ('queue' in data) showQueueOf(data.queue);
  showSummary();
  showState();
  beat();
}

function showSummary() {
  const s = has.summary;
  const known = s.state === 'live' || s.state === 'stale';
  set($('ensemble'), s.servers + (s.root === '/' ? '' : ' ' + s.root));
  set($('count-locks'), known || s.locks ? s.locks.toLocaleString('en') : '–');
  set($('word-locks'), s.locks === 1 ? 'lock' : 'locks');
  set($('count-held'), known || s.held ? s.held.toLocaleString('en') : '–');
  set($('count-waiting'), known || s.waiting ? s.waiting.toLocaleString('en') : '–');
  $('figure-dead').hidden = !s.deadlocks;
  set($('count-dead'), s.deadlocks);
  set($('word-dead'), s.deadlocks === 1 ? 'deadlock' : 'deadlocks');
  set($('rows-note'), noteOf(s, known));
  const unread = s.unread ?? [];
  $('unread').hidden = unread.length === 0;
  const reasons = [...new Set(unread.map((u) => u.error))].join(', ');
  set($('unread-text'), many(unread.length + (s.more_unread ?? 0), 'path could not be read', 'paths could not be read') + ': ' + reasons);
  $('unread-list').replaceChildren(...unread.map((u) => element('li', {}, `${u.path}: ${u.error}`)));
}

function noteOf(s, known) {
  if (!known && s.locks === 0) return '';
  if (s.locks === 0) return `No locks below ${s.root}. docent looks for locks, semaphores and elections of docent, Curator and kazoo.`;
  if (s.matching === 0) return 'No lock matches.';
  if (s.matching > 200) return `The first 200 of ${s.matching.toLocaleString('en')}: find the others by name.`;
  return s.matching < s.locks ? `${s.matching} of ${many(s.locks, 'lock', 'locks')}` : '';
}

function showState() {
  const s = has.summary;
  let state = s?.state ?? 'connecting', text = state, banner = '';
  if (has.failed) {
    [state, text, banner] = ['failed', 'failed', `This page has failed: ${has.failed}. What it shows is old. Load it again.`];
  } else if (has.refused) {
    [state, text, banner] = ['refused', 'refused', has.refused];
  } else if (has.lost) {
    [state, text, banner] = ['lost', 'disconnected', `This page has lost docent since ${clock(has.lost)}. It tries again.`];
  } else if (has.paused) {
    [state, text] = ['paused', 'paused'];
  } else if (state === 'live') {
    text = `live, as of ${clock(now())}`;
  } else if (state === 'stale') {
    banner = `docent has lost ZooKeeper since ${clock(s.since)}. The page shows what was there then.`;
  } else if (state === 'scanning') {
    banner = 'docent reads what is there. No verdict on deadlocks until that is complete.';
  } else {
    banner = s ? `Connecting to ${s.servers}${s.cause ? ': ' + s.cause : ''}` : '';
  }
  document.body.dataset.state = state;
  set($('state-text'), text);
  $('banner').hidden = !banner;
  set($('banner'), banner);
  const waits = state === 'connecting' || state === 'scanning' && !s.locks;
  if (waits && !$('rows').tBodies[0].firstChild) {
    $('rows').tBodies[0].append(...[0, 1, 2].map(() => element('tr', { class: 'waits-for-rows' }, element('td', { colspan: 7 }, element('div', { class: 'skeleton' })))));
  } else if (!waits) {
    document.querySelectorAll('.waits-for-rows').forEach((row) => row.remove());
  }
}

function showFindings(findings) {
  $('findings').replaceChildren(...findings.map((f) => element('li', { class: f.severity },
    element('b', {}, f.kind), element('span', { class: 'who' }, f.parties.join(' ⇄ ')),
    element('span', { class: 'where' }, f.locks.join('  ')),
    element('span', {}, 'since ', element('span', { 'data-since': f.since })),
    element('span', { class: 'advice' }, f.advice))));
}

function showQueueOf(queue) {
  $('queue').hidden = !ask.open;
  if (!ask.open) return;
  set($('queue-title'), ask.open);
  showQueue($('contenders'), queue ?? { contenders: [] }, has.summary.revoke ? revoke : undefined);
  set($('queue-note'), !queue ? 'Nobody holds or awaits this lock now.' : queue.more ? `and ${queue.more} more waiters` : '');
}

async function revoke(who) {
  set($('ask-text'), `${who.name} ${who.owner ?? ''} ${who.znode}`);
  const dialog = $('ask');
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener('close', done, { once: true }));
  if (dialog.returnValue !== 'ask') return;
  const reply = await fetch('/revoke', {
    method: 'POST', headers: { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' },
    body: JSON.stringify({ znode: who.znode, fence: who.fence }),
  }).catch(() => undefined);
  set($('queue-note'), reply ? (await reply.text()).trim() : 'docent could not be reached');
}

// The summary is spoken every five seconds at most, and only if it differs.
let spoken = 0;
function speak() {
  const s = has.summary;
  if (Date.now() - spoken < 5000) return;
  const figures = s ? `: ${many(s.locks, 'lock', 'locks')}, ${s.waiting} waiting` : '';
  const text = document.body.dataset.state + figures + (s?.deadlocks ? `, ${many(s.deadlocks, 'deadlock', 'deadlocks')}` : '');
  if ($('spoken').textContent === text) return;
  spoken = Date.now();
  set($('spoken'), text);
}

// beat shows the time: ages, and the ends of holds that go on.
function beat() {
  if (has.summary && !has.paused && has.summary.state !== 'connecting') {
    tick(viewed());
    timeline.show($('timeline'), has.lanes, viewed());
  }
  speak();
}

function reopen() {
  if (has.paused || has.failed || document.hidden) return;
  const query = new URLSearchParams({ sort: ask.sort });
  if (ask.find) query.set('find', ask.find);
  if (ask.waiting) query.set('waiting', '1');
  if (ask.desc) query.set('desc', '1');
  if (ask.open) query.set('open', ask.open);
  for (const path of ask.pick) query.append('pick', path);
  stream.open(query);
}

// repick asks for the chosen lanes of the timeline.
function repick() {
  table.markAll();
  $('unpick').hidden = ask.pick.size === 0;
  set($('picked'), ask.pick.size === mostLanes ? `${mostLanes} lanes are the most.` : '');
  reopen();
}

// A hidden tab closes its stream: browsers open few connections to a host.
document.addEventListener('visibilitychange', () => document.hidden ? stream.close() : reopen());
$('pause').addEventListener('click', () => {
  has.paused = !has.paused;
  $('pause').setAttribute('aria-pressed', has.paused);
  has.paused ? stream.close() : reopen();
  showState();
});
$('filter').addEventListener('submit', (e) => e.preventDefault());
let typing;
$('find').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => { ask.find = $('find').value; reopen(); }, 200);
});
$('waiting').addEventListener('change', () => { ask.waiting = $('waiting').checked; reopen(); });
document.addEventListener('keydown', (e) => {
  if (e.key === '/' && !e.ctrlKey && !e.metaKey && e.target.tagName !== 'INPUT') {
    e.preventDefault();
    $('find').focus();
  }
});
function sorts() {
  for (const button of document.querySelectorAll('[data-sort]')) {
    const on = button.dataset.sort === ask.sort;
    button.parentElement.setAttribute('aria-sort', !on ? 'none' : ask.desc ? 'descending' : 'ascending');
  }
}
for (const button of document.querySelectorAll('[data-sort]')) {
  button.addEventListener('click', () => {
    const sort = button.dataset.sort;
    [ask.desc, ask.sort] = [ask.sort === sort && !ask.desc, sort];
    sorts();
    reopen();
  });
}
for (const [button, picture, list] of [['graph-toggle', 'graph', 'graph-table'], ['holds-toggle', 'timeline', 'holds-table']]) {
  $(button).addEventListener('click', () => {
    const asTable = $(list).hidden;
    $(list).hidden = !asTable;
    $(picture).hidden = asTable;
    $(button).setAttribute('aria-pressed', asTable);
  });
}
$('unpick').addEventListener('click', () => {
  ask.pick.clear();
  $('holds-toggle').focus();
  repick();
});
$('queue-close').addEventListener('click', () => {
  const path = ask.open;
  ask.open = '';
  $('queue').hidden = true;
  table.rows.get(path)?.path.focus();
  reopen();
});
$('save').addEventListener('click', async () => {
  const reply = await fetch('/trace.json', { headers: { Authorization: 'Bearer ' + token } }).catch(() => undefined);
  if (!reply?.ok) return set($('holds-note'), 'docent could not be reached');
  const url = URL.createObjectURL(await reply.blob());
  element('a', { href: url, download: 'docent-holds.json' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
});
addEventListener('hashchange', () => location.reload());

sorts();
showState();
reopen();
setInterval(() => {
  showState();
  if (has.failed) speak();
  else beat();
}, 1000);
