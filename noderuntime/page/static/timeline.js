// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What was held over time, and its means over the columns of a chart.
import {BANDS} from './palette.js';

export const KEPT_MS = 125_000;
const MOST_FRAMES = 30_000;  // while the page is paused

export class Timeline {
  /** [t_ms, Map job -> bytes], ascending: what was held from then on. */
  #frames = [];
  #unit = 1;
  /** Until when something is known. */
  until = 0;

  clear() {
    this.#frames = [];
    this.until = 0;
  }

  /** `keepFrom`: what is older is dropped, as far as nobody looks at it. */
  add(frames, unit, now, keepFrom) {
    this.#unit = unit;
    for (const [t, pairs] of frames) {
      const held = new Map();
      for (let i = 0; i < pairs.length; i += 2) held.set(pairs[i], pairs[i + 1] * this.#unit);
      // A step that was not over when it was asked for comes again.
      if (this.#frames.length > 0 && this.#frames[this.#frames.length - 1][0] === t) this.#frames.pop();
      this.#frames.push([t, held]);
    }
    this.until = now;
    let drop = Math.max(0, this.#frames.length - MOST_FRAMES);
    while (drop + 1 < this.#frames.length && this.#frames[drop + 1][0] < keepFrom - KEPT_MS) ++drop;
    if (drop > 0) this.#frames.splice(0, drop);
  }

  get from() {
    return this.#frames.length > 0 ? this.#frames[0][0] : Infinity;
  }

  /** Index of the frame that holds at `t`; -1: before the first. */
  #at(t) {
    let low = 0;
    let high = this.#frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#frames[middle][0] <= t) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  /** Map job -> bytes at a moment; null: not known. */
  heldAt(t) {
    const index = this.#at(t);
    return index < 0 || t > this.until ? null : this.#frames[index][1];
  }

  /** Most that each job held from `t` on. */
  peaksSince(t) {
    const peaks = new Map();
    for (let i = Math.max(0, this.#at(t)); i < this.#frames.length; ++i) {
      for (const [job, bytes] of this.#frames[i][1]) {
        if (bytes > (peaks.get(job) ?? 0)) peaks.set(job, bytes);
      }
    }
    return peaks;
  }

  /** Mean bytes of each band from `begin` to `end`; null: not known in all of it. */
  means(begin, end, bandOf) {
    const stop = Math.min(end, this.until);
    let index = this.#at(begin);
    if (index < 0 || stop <= begin) return null;
    const sums = new Float64Array(BANDS + 1);
    let t = begin;
    while (t < stop) {
      const next = index + 1 < this.#frames.length ? Math.min(this.#frames[index + 1][0], stop) : stop;
      for (const [job, bytes] of this.#frames[index][1]) sums[bandOf(job)] += bytes * (next - t);
      t = next;
      ++index;
    }
    for (let i = 0; i < sums.length; ++i) sums[i] /= stop - begin;
    return sums;
  }
}

/** The columns of a chart, each of the same stretch of time for good: they move, but do not shimmer. */
export class Columns {
  #timeline;
  #bandOf;
  #cache = new Map();
  #version = -1;
  width = 50;  // ms

  constructor(timeline, bandOf) {
    this.#timeline = timeline;
    this.#bandOf = bandOf;
  }

  /** `version`: of the bands; other bands are other columns. */
  prepare(width, version) {
    if (width === this.width && version === this.#version) return;
    this.width = width;
    this.#version = version;
    this.#cache.clear();
  }

  get(number) {
    const known = this.#cache.get(number);
    if (known) return known;
    const end = (number + 1) * this.width;
    const means = this.#timeline.means(number * this.width, end, this.#bandOf);
    // The latest step may still change.
    if (means && end <= this.#timeline.until - 100) this.#cache.set(number, means);
    return means;
  }

  forgetBefore(number) {
    for (const key of this.#cache.keys()) {
      if (key < number) this.#cache.delete(key);
    }
  }
}
