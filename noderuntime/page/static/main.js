// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Puts the parts together: what is heard goes into the model, and the parts show it.
import {Chart} from './chart.js';
import {Cursor} from './cursor.js';
import {Details} from './details.js';
import {byId, reducedMotion, setAttribute, setText} from './dom.js';
import {bytes, bytesLike, count} from './format.js';
import {Lanes} from './lanes.js';
import {Loans} from './loans.js';
import {Model, stateOf} from './model.js';
import {Policy} from './policy.js';
import {Stream, ask, takeToken} from './stream.js';
import {Table} from './table.js';
import {Waits} from './waits.js';

const NUMBERS_MS = 250;   // numbers that change faster cannot be read
const SPOKEN_MS = 15_000;

const model = new Model();
const chart = new Chart(byId('chart'), model);
const lanes = new Lanes(model);
const waits = new Waits(model);
const loans = new Loans(model);
const details = new Details();
const policy = new Policy(model, say);
const table = new Table(model, (id) => details.open(id, model.shown.gpu, model.labelOf(id)));
const cursor = new Cursor(model, chart, () => showNumbers());
const hasToken = takeToken();
let state = {name: 'connecting', text: ''};
let spoken = {text: '', at: 0};

function say(text) {
  setText(byId('summary'), text);
  spoken = {text, at: performance.now()};
}

// What is shown.

function showFigures(view) {
  const of = (id, value) => {
    setText(byId(id), bytesLike(value, view.pool));
    setAttribute(byId(id), 'data-value', value);
  };
  of('sum-held', view.held);
  of('sum-free', view.free);
  of('sum-lent', view.lent);
  setText(byId('sum-pool'), `of ${bytes(view.pool)}`);
  setAttribute(byId('sum-pool'), 'data-value', view.pool);
  byId('gauge-held').style.width = `${Math.min(100, (view.held / view.pool) * 100)}%`;
  byId('gauge-budget').style.width = `${Math.max(0, 100 - (view.budget / view.pool) * 100)}%`;
  setText(byId('sum-jobs'), String(view.jobs.length));
  const states = view.jobs.map(stateOf);
  const inside = states.filter((each) => each === 'in').length;
  const waiting = states.filter((each) => each === 'wait').length;
  setText(byId('sum-waiting'), view.jobs.length > 0 ? `${inside} inside, ${waiting} wait` : '');
  setText(byId('step'), `${view.step_ms} ms`);
  const label = (element, value, text) => {
    setText(element, `${text} ${bytes(value)}`);
    element.style.top = `${chart.yOf(value)}px`;
  };
  label(byId('label-pool'), view.pool, 'pool');
  const less = view.budget < view.pool;
  byId('label-budget').hidden = !less;
  if (less) label(byId('label-budget'), view.budget, 'lent of it');
}

function showNumbers() {
  const view = model.shown;
  showState();
  if (!view) return;
  showFigures(view);
  policy.update();
  cursor.update();
  lanes.update(cursor.held());
  table.update();
  waits.update();
  loans.update();
  setAttribute(document.body, 'data-seq', view.seq);
  setAttribute(document.body, 'data-now', view.now_ms);
  summarize(view);
}

/** Rarely, and only what is news. */
function summarize(view) {
  if (model.paused || performance.now() - spoken.at < SPOKEN_MS) return;
  const waiting = view.jobs.filter((job) => job.waits_for !== '').length;
  const text = `${count(view.jobs.length, 'job', 'jobs')}, ${waiting} waiting, policy ${view.policy}.`;
  if (text !== spoken.text) say(text);
}

const WORDS = {
  connecting: 'Connecting', live: 'Live', gone: 'No daemon', lost: 'Reconnecting', refused: 'Refused', paused: 'Paused',
};

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]?$/.exec(text)[0] || text === '' ? '' : '.');
}

function showState() {
  const shown = state.name === 'live' && model.paused ? 'paused' : state.name;
  setAttribute(byId('connection'), 'data-state', shown);
  setAttribute(document.body, 'data-state', shown);
  policy.setReachable(state.name === 'live');
  setText(byId('connection-text'), WORDS[shown]);
  const none = state.name === 'live' && model.shown?.jobs.length === 0;
  const titles = {gone: 'No daemon answers', lost: 'The connection was lost', refused: 'The page was refused'};
  const title = none && !model.paused ? 'No job yet' : titles[state.name] ?? '';
  byId('cover').hidden = title === '';
  setText(byId('cover-title'), title);
  const again = {gone: ' It is asked again each second.', lost: ' Trying again.', refused: ' Trying again.'}[state.name] ?? '';
  setText(byId('cover-text'), none ? 'Jobs appear here as soon as they begin:' : sentence(state.text) + again);
  byId('cover-code').hidden = !none && state.name !== 'gone';
}

// What is heard.

const stream = new Stream({
  start(message) {
    model.start(message);
    askAccess();
    showNumbers();
  },
  live(message) {
    model.live(message);
  },
  state(name, text) {
    const changed = name !== state.name;
    state = {name, text};
    if (!changed) return;
    showState();
    if (name === 'gone' || name === 'lost') say(`${WORDS[name]}. ${text}`);
  },
});

async function askAccess() {
  try {
    const access = await ask('api/gpus');
    policy.setAccess(access);
    showGpus(access.gpus);
    setText(byId('version'), `Sluice ${access.version}`);
    setText(byId('access'), access.may_change ? 'You may change things here.' :
        hasToken ? 'Read-only: the token of this address is of another gateway.' : 'Read-only: open the address that sluice page prints to change things.');
  } catch {
    // The stream says what is wrong.
  }
}

function showGpus(gpus) {
  const select = byId('gpu');
  const current = model.view?.gpu ?? gpus[0]?.gpu ?? 0;
  select.hidden = gpus.length < 2;
  const label = (gpu) => `GPU ${gpu.number}${gpu.up ? '' : ' (no daemon)'}`;
  if (gpus.map(label).join() !== [...select.options].map((option) => option.text).join()) {
    select.replaceChildren(...gpus.map((gpu) => new Option(label(gpu), gpu.gpu)));
  }
  select.value = current;
  const shown = gpus.find((gpu) => gpu.gpu === current);
  setText(byId('gpu-name'), shown ? (gpus.length < 2 ? `GPU ${shown.number}${shown.name ? ' · ' : ''}` : '') + shown.name : '');
  document.title = shown?.up ? `Sluice · GPU ${shown.number} ${shown.name}` : 'Sluice';
}

// What is pressed.

function setPaused(paused) {
  model.setPaused(paused);
  setAttribute(byId('pause'), 'aria-pressed', paused);
  setText(byId('pause'), paused ? 'Go on' : 'Pause');
  showNumbers();
}

byId('pause').addEventListener('click', () => setPaused(!model.paused));
byId('plot').addEventListener('keydown', (event) => {
  if (event.key !== ' ') return;
  event.preventDefault();
  setPaused(!model.paused);
});
byId('window').addEventListener('change', (event) => {
  chart.seconds = Number(event.target.value);
  cursor.reset();
});
byId('gpu').addEventListener('change', (event) => {
  const url = new URL(location);
  url.searchParams.set('gpu', event.target.value);
  history.replaceState(null, '', url);
  setPaused(false);
  cursor.reset();
  stream.open(Number(event.target.value));
});
byId('theme').addEventListener('change', (event) => {
  const chosen = event.target.value;
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem('sluice-theme', chosen);
  } catch {
    // Until the page is closed, then.
  }
});
const theme = document.documentElement.dataset.theme;
if (theme) document.querySelector(`#theme input[value="${theme}"]`).checked = true;

// What is drawn: with the screen, but no more than some 30 times a second; where motion is not wanted, with the numbers.

let drawn = 0;
let numbers = 0;
function draw(now) {
  requestAnimationFrame(draw);
  if (now - numbers >= NUMBERS_MS) {
    numbers = now;
    showNumbers();
  }
  const pace = reducedMotion.matches ? 1000 : 30;
  if (now - drawn < pace) return;
  drawn = now;
  chart.draw();
  lanes.draw(chart.seconds);
  cursor.draw();
}

const asked = new URLSearchParams(location.search).get('gpu');
askAccess();
stream.open(asked !== null && /^\d{1,3}$/.test(asked) ? Number(asked) : null);
requestAnimationFrame(draw);
