// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What is known: the daemon's latest words, and what they were over time. Nothing here draws.
import {labels} from './format.js';
import {BANDS, OTHERS} from './palette.js';
import {KEPT_MS, Timeline} from './timeline.js';

const GONE_MS = 20_000;  // a band is kept so long for a job that ended

/** in: in its iteration; wait; out: at its trough or not begun; away: in host memory. */
export function stateOf(job) {
  if (job.phase === 'evicted') return 'away';
  if (job.waits_for !== '' || job.code !== '' || job.phase === 'waiting') return 'wait';
  return ['running', 'unprofiled', 'dying'].includes(job.phase) ? 'in' : 'out';
}

export class Model {
  timeline = new Timeline();
  /** The latest message without its frames. */
  view = null;
  /** The one that is shown: the latest, or that of the moment of the pause. */
  shown = null;
  paused = false;
  /** Which job has which band; null: none. */
  bands = Array(BANDS).fill(null);
  bandsVersion = 0;
  /** Job -> [[t_ms, state, how far in its iteration]], where something changed. */
  states = new Map();
  names = new Map();
  #bandOf = new Map();
  #labels = new Map();
  #seen = new Map();
  #rates = new Map();
  #clock = {server: 0, here: 0};

  bandOf = (job) => this.#bandOf.get(job) ?? OTHERS;

  /** A short name, by which people tell the jobs apart that are there. */
  labelOf(job) {
    return this.#labels.get(job) ?? `job ${job}`;
  }

  start(message) {
    this.timeline.clear();
    this.states.clear();
    this.#rates.clear();
    this.view = null;
    this.live(message);
  }

  live(message) {
    const {frames, ...view} = message;
    this.view = view;
    this.#clock = {server: view.now_ms, here: performance.now()};
    this.timeline.add(frames, view.unit, view.now_ms, this.end);
    const news = view.jobs.some((job) => this.names.get(job.id) !== job.name);
    for (const job of view.jobs) {
      this.names.set(job.id, job.name);
      this.#seen.set(job.id, view.now_ms);
      this.#note(job, view.now_ms);
    }
    if (news) {
      this.#labels = labels(this.names);
      ++this.bandsVersion;  // who shows them shows others now
    }
    this.#assignBands();
    if (!this.paused) this.shown = view;
  }

  setPaused(paused) {
    this.paused = paused;
    if (!paused) this.shown = this.view;
  }

  /** The right edge of what is shown, Unix ms. A little behind, so that it moves evenly. */
  get end() {
    if (this.paused && this.shown) return this.shown.now_ms;
    if (!this.view) return 0;
    const moved = performance.now() - this.#clock.here;
    return Math.min(this.#clock.server + moved - 150, this.#clock.server + 1000);
  }

  /** Iterations per second over some seconds; null: not known yet. */
  rateOf(job) {
    const notes = this.#rates.get(job);
    if (!notes || notes.length < 2) return null;
    const [t0, i0] = notes[0];
    const [t1, i1] = notes[notes.length - 1];
    return t1 - t0 < 1000 ? null : ((i1 - i0) * 1000) / (t1 - t0);
  }

  #note(job, now) {
    const rates = this.#rates.get(job.id) ?? [];
    if (rates.length > 0 && job.iteration < rates[rates.length - 1][1]) rates.length = 0;
    rates.push([now, job.iteration]);
    while (rates.length > 2 && rates[1][0] < now - 5000) rates.shift();
    this.#rates.set(job.id, rates);

    const state = stateOf(job);
    // Where several iterations pass between two looks, how far one is says nothing.
    const slow = (this.rateOf(job.id) ?? 0) < 2.5;
    const far = state === 'in' && slow && job.gates > 1 ? Math.min(1, (job.gate + 1) / job.gates) : 1;
    const states = this.states.get(job.id) ?? [];
    const last = states[states.length - 1];
    if (!last || last[1] !== state || last[2] !== far) states.push([now, state, far]);
    while (states.length > 1 && states[1][0] < this.end - KEPT_MS) states.shift();
    this.states.set(job.id, states);
  }

  /** A job keeps its band. Free ones go to who held most, so that a crowd of small jobs shares one. */
  #assignBands() {
    const now = this.view.now_ms;
    let changed = false;
    const present = new Set(this.view.jobs.map((job) => job.id));
    const wanting = this.view.jobs.filter((job) => !this.#bandOf.has(job.id));
    this.bands.forEach((job, band) => {
      if (job === null || present.has(job)) return;
      const gone = now - (this.#seen.get(job) ?? 0);
      if (gone < GONE_MS && wanting.length === 0) return;
      this.#release(band);
      changed = true;
    });
    if (wanting.length > 0 && this.bands.includes(null)) {
      const peaks = this.timeline.peaksSince(now - 10_000);
      const size = (job) => Math.max(peaks.get(job.id) ?? 0, job.held);
      wanting.sort((a, b) => size(b) - size(a) || a.id - b.id);
      const chosen = wanting.slice(0, this.bands.filter((job) => job === null).length);
      chosen.sort((a, b) => a.id - b.id);
      for (const job of chosen) this.#give(this.bands.indexOf(null), job.id);
      changed = true;
    }
    if (changed) ++this.bandsVersion;
    for (const [job, seen] of this.#seen) {
      if (present.has(job) || now - seen < KEPT_MS) continue;
      for (const map of [this.#seen, this.#rates, this.states, this.names]) map.delete(job);
    }
  }

  #give(band, job) {
    this.bands[band] = job;
    this.#bandOf.set(job, band);
  }

  #release(band) {
    this.#bandOf.delete(this.bands[band]);
    this.bands[band] = null;
  }

  /** Gives a job that shares the last band one of its own, in the place of the smallest. */
  feature(job) {
    if (this.#bandOf.has(job)) return;
    const held = (id) => this.view.jobs.find((each) => each.id === id)?.held ?? 0;
    let band = this.bands.indexOf(null);
    if (band < 0) {
      band = this.bands.reduce((best, id, i) => (held(id) < held(this.bands[best]) ? i : best), 0);
      this.#release(band);
    }
    this.#give(band, job);
    ++this.bandsVersion;
  }
}
