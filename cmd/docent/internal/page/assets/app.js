// The page: what it asks for, and what it shows of the answers.
import { element, set, stamp, moment, since, many, shown } from './text.js';
import { Stream } from './stream.js';
import { Table, showQueue, tick } from './table.js';
import * as graph from './graph.js';
import * as timeline from './timeline.js';

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
const ask = { find: '', waiting: false, sort: 'matter', desc: false, open: '', whole: false, pick: new Set() };
readAddress();
const has = { summary: undefined, findings: [], unfolded: false, lanes: [], heard: 0, told: 0, at: undefined, lost: false, paused: false, asking: false, refused: '', failed: '' };
const mostLanes = 24; // that a stream may ask for

const table = new Table($('rows'), ask.pick, {
  open(path) {
    openQueue(ask.open === path ? '' : path);
  },
  pick(path) {
    ask.pick.delete(path) || ask.pick.size < mostLanes && ask.pick.add(path);
    repick();
  },
});
const stream = new Stream(token, {
  message(event, data) {
    [has.told, has.at, has.lost, has.refused] = [data.now, moment(), false, ''];
    if (has.paused && !has.asking) return showState(); // docent is there, and the page shows what it showed
    [has.heard, has.asking] = [data.now, false];
    apply(data, event === 'snapshot');
  },
  lost() {
    has.lost = true;
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
// A browser also reports so, with no error, that an observer of sizes is to be called once more in the next
// frame: nothing has failed then.
addEventListener('error', (e) => { if (!/^ResizeObserver loop/.test(e.message)) fail(e.error ?? e.message); });
addEventListener('unhandledrejection', (e) => fail(e.reason));

// viewed returns the time that the page shows, by docent's clock: that of the latest message that it has shown or, if
// docent had lost ZooKeeper by then, of that loss. It never runs ahead of what docent has said.
function viewed() {
  const s = has.summary;
  return s?.state === 'stale' ? Math.min(s.since, has.heard) : has.heard;
}

// silent reports whether docent has said nothing for longer than it should.
function silent() { return has.lost || has.at && since(has.at) > stream.silence; }

function apply(data, anew) {
  if (data.summary) {
    has.summary = data.summary;
    stream.expect(data.summary.beat);
  }
  if (data.rows || data.order) table.apply(data.rows ?? [], data.order, ask.open, anew);
  if (data.findings) showFindings(data.findings);
  if (data.graph) graph.show($('graph'), $('graph-table').firstElementChild, $('graph-note'), data.graph);
  if (data.holds) {
    has.lanes = data.holds;
    timeline.list($('holds-table').firstElementChild, $('holds-note'), has.lanes, viewed());
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
  $('left-out').hidden = !s.left_out;
  set($('left-out'), s.left_out ? `${many(s.left_out, 'znode is', 'znodes are')} left out, with all below: --max of docent serve, or choose another root.` : '');
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

// What helps against the faults of a root.
const remedies = {
  no_auth: 'Give it credentials that may, or another root.',
  not_gzip: 'Its data are not gzipped: start docent without --compress, or with another root.',
};

// at returns a time as the state has it.
function at(ms) { return stamp(ms, Date.now()); }

function showState() {
  const s = has.summary;
  let state = s?.state ?? 'connecting', text = state, banner = '';
  if (has.failed) {
    [state, text, banner] = ['failed', 'failed', `This page has failed: ${has.failed}. What it shows is old. Load it again.`];
  } else if (has.refused) {
    [state, text, banner] = ['refused', 'refused', has.refused];
  } else if (silent()) {
    [state, text] = ['lost', 'disconnected'];
    banner = has.heard ? `This page has lost docent since ${at(has.told)}, and shows what was there ${has.paused ? 'at ' + at(viewed()) : 'then'}. It tries again.`
      : 'This page can’t reach docent. It tries again.';
  } else if (s?.fault) {
    [state, text] = ['refused', 'not allowed'];
    banner = `docent can't read ${s.root}: ${s.fault}. ${remedies[s.fault] ?? 'Give it another root.'}`;
  } else if (state === 'live') {
    text = `live, as of ${at(has.heard)}`;
  } else if (state === 'stale') {
    banner = `docent has lost ZooKeeper since ${at(s.since)}. The page shows what was there then.`;
  } else if (state === 'scanning') {
    banner = 'docent reads what is there. No verdict on deadlocks until that is complete.';
  } else {
    banner = s ? `Connecting to ${s.servers}${s.cause ? ': ' + s.cause : ''}` : '';
  }
  if (has.paused && (state === 'live' || state === 'stale')) [state, text] = ['paused', `paused, as of ${at(viewed())}`];
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

const foldedFindings = 3;

// showFindings shows the worst findings, and the others once the user asks for them.
function showFindings(findings) {
  has.findings = findings ?? has.findings;
  const rest = has.findings.length - foldedFindings;
  const shownNow = has.unfolded ? has.findings : has.findings.slice(0, foldedFindings);
  $('findings').replaceChildren(...shownNow.map((f) => element('li', { class: f.severity },
    element('b', {}, f.kind),
    element('span', { class: 'who' }, f.parties.join(' ⇄ ') + (f.more ? ` and ${f.more} more` : '')),
    element('span', { class: 'where' }, ...f.locks.slice(0, 4).map((path) => link(path)), f.locks.length > 4 ? ` and ${f.locks.length - 4} more` : ''),
    element('span', {}, 'since ', element('span', { 'data-since': f.since })),
    element('span', { class: 'advice' }, f.advice))));
  $('findings-more').hidden = rest <= 0;
  set($('findings-more'), has.unfolded ? 'Show the first three' : `Show ${many(rest, 'more finding', 'more findings')}`);
  $('findings-more').setAttribute('aria-expanded', Boolean(has.unfolded));
}
$('findings-more').addEventListener('click', () => {
  has.unfolded = !has.unfolded;
  showFindings();
  beat();
});

// link returns a button that opens the queue of a lock.
function link(path) {
  const button = element('button', { type: 'button', class: 'path', title: shown(path) }, path);
  button.addEventListener('click', () => openQueue(path));
  return button;
}

function showQueueOf(queue) {
  $('queue').hidden = !ask.open;
  if (!ask.open) return;
  set($('queue-title'), ask.open);
  $('queue-title').title = shown(ask.open);
  showQueue($('contenders'), queue ?? { contenders: [] }, has.summary.revoke ? revoke : undefined, unfold);
  set($('queue-note'), queue ? '' : 'Nobody holds or awaits this lock now.');
}

function unfold() {
  ask.whole = true;
  reopen();
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
  if (has.summary && has.summary.state !== 'connecting') {
    tick(viewed());
    drawHolds();
  }
  speak();
}

function drawHolds() { timeline.show($('timeline'), has.lanes, viewed()); }

// query returns what the page asks for. The address of the page has the same, without the defaults.
function query() {
  const query = new URLSearchParams();
  if (ask.find) query.set('find', ask.find);
  if (ask.waiting) query.set('waiting', '1');
  if (ask.sort !== 'matter') query.set('sort', ask.sort);
  if (ask.desc) query.set('desc', '1');
  if (ask.open) query.set('open', ask.open);
  return query;
}

function readAddress() {
  const query = new URLSearchParams(location.search);
  ask.find = query.get('find') ?? '';
  ask.waiting = query.get('waiting') === '1';
  ask.sort = document.querySelector(`[data-sort="${CSS.escape(query.get('sort') ?? '')}"]`)?.dataset.sort ?? 'matter';
  ask.desc = query.get('desc') === '1';
  ask.open = query.get('open') ?? '';
  ask.whole = false;
  $('find').value = ask.find;
  $('waiting').checked = ask.waiting;
}

// writeAddress keeps the choice in the address: a new entry of the history for a lock, so that "back"
// leads to the one before.
function writeAddress(anew) {
  const text = query().toString();
  if (text === location.search.slice(1)) return;
  history[anew ? 'pushState' : 'replaceState'](null, '', (text ? '?' + text : location.pathname) + location.hash);
}

function openQueue(path) {
  ask.open = path;
  ask.whole = false;
  writeAddress(true);
  reopen();
}

// reopen asks for what the page is to show. A page that is paused takes the answer, and nothing after it.
function reopen() {
  writeAddress(false);
  has.asking = true;
  listen();
}

// listen opens the stream of what the page is to show.
function listen() {
  if (has.failed || document.hidden) return;
  const asked = query();
  if (ask.whole) asked.set('whole', '1');
  for (const path of ask.pick) asked.append('pick', path);
  stream.open(asked);
}

// repick asks for the chosen lanes of the timeline.
function repick() {
  table.markAll();
  $('unpick').hidden = ask.pick.size === 0;
  set($('picked'), ask.pick.size === mostLanes ? `${mostLanes} lanes are the most.` : '');
  reopen();
}

// A hidden tab closes its stream: browsers open few connections to a host.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return stream.close();
  listen();
  showState();
});
$('pause').addEventListener('click', () => {
  has.paused = !has.paused;
  $('pause').setAttribute('aria-pressed', has.paused);
  if (!has.paused) reopen();
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
graph.control($('graph'), { in: $('graph-in'), out: $('graph-out'), fit: $('graph-fit') });
$('unpick').addEventListener('click', () => {
  ask.pick.clear();
  $('holds-toggle').focus();
  repick();
});
$('queue-close').addEventListener('click', () => {
  const path = ask.open;
  $('queue').hidden = true;
  table.rows.get(path)?.path.focus();
  openQueue('');
});
$('save').addEventListener('click', async () => {
  const reply = await fetch('/trace.json', { headers: { Authorization: 'Bearer ' + token } }).catch(() => undefined);
  if (!reply?.ok) return set($('holds-note'), 'docent could not be reached');
  const url = URL.createObjectURL(await reply.blob());
  element('a', { href: url, download: 'docent-holds.json' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
});
addEventListener('popstate', () => {
  if (new URLSearchParams(location.hash.slice(1)).get('token') !== token) return location.reload();
  readAddress();
  sorts();
  reopen();
});

sorts();
showState();
reopen();
let width;
new ResizeObserver(([box]) => {
  if (has.summary && width !== box.contentRect.width) drawHolds();
  width = box.contentRect.width;
}).observe($('timeline'));
// The time that the page shows is docent's. This clock finds out that docent says nothing.
setInterval(() => {
  stream.check();
  showState();
  speak();
}, 1000);
