// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Below the chart, on the same scale of time: where each job is in its iteration, and which gate is next.
import {byId, cssColour, fitCanvas, make, makeSvg, setAttribute, setText} from './dom.js';
import {bytesLike, count} from './format.js';
import {OTHERS, fillOf, swatch} from './palette.js';
import {stateOf} from './model.js';

const WORDS = {
  parked: 'at its trough', evicted: 'in host memory', unprofiled: 'is measured', registered: 'has not begun',
  connecting: 'begins', resting: 'has given all back', dying: 'has ended, its memory not yet', ended: 'ended',
};

function gates() {
  const done = makeSvg('rect', {class: 'done', height: 5, width: 0});
  const svg = makeSvg('svg', {class: 'gates', preserveAspectRatio: 'none', viewBox: '0 0 100 5', 'aria-hidden': 'true'},
                      makeSvg('rect', {class: 'todo', width: 100, height: 5}), done);
  return {svg, done};
}

function row(band, id, title) {
  const parts = {
    bytes: make('span', {class: 'bytes'}),
    strip: make('canvas', {'aria-hidden': 'true'}),
    place: make('span'),
    gates: gates(),
  };
  const name = make('span', {class: 'title', title}, title);
  parts.item = make('li', {class: 'lane', 'data-job': id},
                    make('div', {class: 'who'}, swatch(band), make('span', {class: 'number'}, id === 'others' ? '' : String(id)), name, parts.bytes), parts.strip,
                    make('div', {class: 'place'}, parts.place, parts.gates.svg));
  parts.title = name;
  return parts;
}

export class Lanes {
  #list = byId('lanes');
  #taken = byId('lanes-taken');
  #model;
  #rows = [];
  #others = null;
  #version = -1;

  constructor(model) {
    this.#model = model;
  }

  /** Texts. `held`: Map job -> bytes at the cursor; null: now. */
  update(held) {
    const view = this.#model.shown;
    if (!view) return;
    const crowd = view.jobs.filter((job) => this.#model.bandOf(job.id) === OTHERS);
    this.#build(crowd.length > 0);
    const inside = view.jobs.filter((job) => stateOf(job) === 'in').length;
    setText(this.#taken, `${inside} of ${count(view.lanes, 'lane', 'lanes')} taken`);
    const jobs = new Map(view.jobs.map((job) => [job.id, job]));
    for (const {id, parts} of this.#rows) {
      const job = jobs.get(id);
      const bytes = held ? held.get(id) ?? 0 : job?.held ?? 0;
      setText(parts.bytes, bytesLike(bytes, view.pool));
      setAttribute(parts.bytes, 'data-value', bytes);
      setText(parts.place, this.#place(job));
      const done = job && job.gates > 0 && stateOf(job) === 'in' ? ((job.gate + 1) / job.gates) * 100 : 0;
      setAttribute(parts.gates.done, 'width', Math.min(100, done).toFixed(1));
    }
    if (this.#others) this.#updateOthers(crowd, held, view);
  }

  #place(job) {
    if (!job) return WORDS.ended;
    const state = stateOf(job);
    const iteration = `iteration ${job.iteration.toLocaleString('en')}`;
    if (state === 'in' && job.gates > 0) return `gate ${Math.min(job.gate + 1, job.gates)}/${job.gates} · ${iteration}`;
    if (state === 'wait') return job.code ? `waits: ${job.code}` : 'waits';
    return WORDS[job.phase] ?? job.phase;
  }

  #updateOthers(crowd, held, view) {
    const {parts} = this.#others;
    setText(parts.title, count(crowd.length, 'other job', 'other jobs'));
    const bytes = crowd.reduce((sum, job) => sum + (held ? held.get(job.id) ?? 0 : job.held), 0);
    setText(parts.bytes, bytesLike(bytes, view.pool));
    setAttribute(parts.bytes, 'data-value', bytes);
    const states = {in: 0, wait: 0, out: 0, away: 0};
    for (const job of crowd) ++states[stateOf(job)];
    setText(parts.place, `${states.in} in, ${states.wait} wait, ${states.out + states.away} out`);
    setAttribute(parts.gates.done, 'width', ((states.in / (crowd.length || 1)) * 100).toFixed(1));
  }

  #build(crowd) {
    if (this.#version === this.#model.bandsVersion && crowd === (this.#others !== null)) return;
    this.#version = this.#model.bandsVersion;
    this.#rows = [];
    this.#others = null;
    this.#model.bands.forEach((id, band) => {
      if (id === null) return;
      const name = this.#model.labelOf(id);
      this.#rows.push({id, band, parts: row(band, id, name)});
    });
    if (crowd) this.#others = {band: OTHERS, parts: row(OTHERS, 'others', '')};
    const all = this.#others ? [...this.#rows, this.#others] : this.#rows;
    this.#list.replaceChildren(...all.map(({parts}) => parts.item));
  }

  /** The strips, as often as the chart. */
  draw(seconds) {
    const colours = {line: cssColour('--line-strong'), wait: cssColour('--warn'), quiet: cssColour('--quiet')};
    for (const {id, band, parts} of this.#rows) {
      this.#drawStrip(parts.strip, band, this.#model.states.get(id) ?? [], seconds, colours);
    }
    if (this.#others) this.#drawCrowd(seconds, colours);
  }

  #drawStrip(canvas, band, states, seconds, colours) {
    const {context, width, height} = fitCanvas(canvas);
    context.clearRect(0, 0, width, height);
    const end = this.#model.end;
    const scale = width / (seconds * 1000);
    const until = Math.min(end, this.#model.timeline.until);
    for (let i = 0; i < states.length; ++i) {
      const [t, state, far] = states[i];
      const next = i + 1 < states.length ? states[i + 1][0] : until;
      const left = Math.max(0, width - (end - t) * scale);
      const right = Math.min(width, width - (end - next) * scale);
      if (right <= left) continue;
      drawState(context, state, band, {left, width: right - left, height, far}, colours, -((end * scale) % 8));
    }
  }

  /** How many of the crowd are inside. */
  #drawCrowd(seconds, colours) {
    const {context, width, height} = fitCanvas(this.#others.parts.strip);
    context.clearRect(0, 0, width, height);
    const end = this.#model.end;
    const scale = width / (seconds * 1000);
    const step = Math.max(100, (seconds * 1000) / (width / 3));
    const crowd = [...this.#model.states].filter(([id]) => this.#model.bandOf(id) === OTHERS).map(([, states]) => states);
    const places = crowd.map(() => 0);
    const first = Math.ceil((end - seconds * 1000) / step) * step;
    for (let t = first; t < Math.min(end, this.#model.timeline.until); t += step) {
      let inside = 0;
      crowd.forEach((states, i) => {
        while (places[i] + 1 < states.length && states[places[i] + 1][0] <= t) ++places[i];
        const at = states[places[i]];
        if (at && at[0] <= t && at[1] === 'in') ++inside;
      });
      const high = crowd.length > 0 ? (inside / crowd.length) * height : 0;
      context.fillStyle = fillOf(context, OTHERS, -((end * scale) % 8));
      context.fillRect(width - (end - t) * scale, height - high, Math.ceil(step * scale), high);
    }
    context.fillStyle = colours.line;
    context.fillRect(0, height - 1, width, 1);
  }
}

function drawState(context, state, band, {left, width, height, far}, colours, shift) {
  if (state === 'in') {
    const high = Math.max(4, height * far);
    context.fillStyle = fillOf(context, band, shift);
    context.fillRect(left, height - high, width, high);
  } else if (state === 'wait') {
    context.save();
    context.beginPath();
    context.rect(left, height * 0.3, width, height * 0.7);
    context.clip();
    context.strokeStyle = colours.wait;
    context.lineWidth = 1.4;
    context.beginPath();
    for (let x = left - height - ((left - shift) % 6); x < left + width + height; x += 6) {
      context.moveTo(x, height);
      context.lineTo(x + height, 0);
    }
    context.stroke();
    context.strokeRect(left, height * 0.3, width, height * 0.7);
    context.restore();
  } else if (state === 'away') {
    context.fillStyle = colours.quiet;
    for (let x = left + 2; x < left + width; x += 5) {
      for (let y = 5; y < height; y += 5) context.fillRect(x, y, 1.5, 1.5);
    }
  } else {
    context.fillStyle = colours.line;
    context.fillRect(left, height - 2, width, 2);
  }
}
