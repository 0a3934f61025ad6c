// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A moment of the chart that is looked at, by pointer or by keys, and what was held then.
import {byId, setAttribute, setText, sizeOf} from './dom.js';
import {ago, bytesLike} from './format.js';

export class Cursor {
  #plot = byId('plot');
  #line = byId('cursor');
  #model;
  #chart;
  #before = null;  // ms before the right edge; null: now
  #moved;

  /** moved(): the cursor is elsewhere. */
  constructor(model, chart, moved) {
    this.#model = model;
    this.#chart = chart;
    this.#moved = moved;
    this.#plot.addEventListener('pointermove', (event) => {
      const box = this.#plot.getBoundingClientRect();
      this.#set(((box.right - event.clientX) / box.width) * this.#span);
    });
    this.#plot.addEventListener('pointerleave', () => this.reset());
    this.#plot.addEventListener('keydown', (event) => this.#key(event));
    this.#plot.addEventListener('blur', () => this.reset());
  }

  get #span() {
    return this.#chart.seconds * 1000;
  }

  #key(event) {
    const step = this.#span / (event.shiftKey ? 10 : 100);
    const before = this.#before ?? 0;
    const to = {ArrowLeft: before + step, ArrowRight: before - step, ArrowDown: before + step, ArrowUp: before - step,
                Home: this.#span, End: 0, PageDown: before + this.#span / 10, PageUp: before - this.#span / 10}[event.key];
    if (event.key === 'Escape') this.reset();
    if (to === undefined) return;
    event.preventDefault();
    this.#set(to);
  }

  #set(before) {
    this.#before = Math.max(0, Math.min(this.#span, before));
    this.#moved();
    this.#announce();
  }

  reset() {
    setAttribute(this.#plot, 'aria-valuemin', -this.#span);
    if (this.#before === null) return;
    this.#before = null;
    this.#moved();
    this.#announce();
  }

  /** Map job -> bytes at the cursor; null: there is no cursor. */
  held() {
    if (this.#before === null) return null;
    return this.#model.timeline.heldAt(this.#model.end - this.#before) ?? new Map();
  }

  /** Whether anything is known of the moment. */
  get #known() {
    return this.#before === null || this.#model.timeline.heldAt(this.#model.end - this.#before) !== null;
  }

  /** The sums beside the chart. */
  update() {
    const view = this.#model.shown;
    const held = this.held();
    const sum = held ? [...held.values()].reduce((total, bytes) => total + bytes, 0) : view.held;
    setText(byId('read-time'), this.#before === null ? (this.#model.paused ? 'paused' : 'now') : ago(this.#before));
    setText(byId('read-held'), this.#known ? bytesLike(sum, view.pool) : 'not seen');
    setAttribute(byId('read-held'), 'data-value', sum);
    setText(byId('read-free'), this.#known ? bytesLike(Math.max(0, view.pool - sum), view.pool) : '–');
  }

  /** To who uses a screen reader, only when the cursor was moved. */
  #announce() {
    const view = this.#model.shown;
    if (!view) return;
    const held = this.held();
    setAttribute(this.#plot, 'aria-valuenow', -Math.round(this.#before ?? 0));
    if (!held) {
      setAttribute(this.#plot, 'aria-valuetext', 'now');
      return;
    }
    const largest = [...held].filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]).slice(0, 4);
    const jobs = largest.map(([id, bytes]) => `${this.#model.labelOf(id)} ${bytesLike(bytes, view.pool)}`);
    setAttribute(this.#plot, 'aria-valuetext', [ago(this.#before), ...jobs].join(', '));
  }

  draw() {
    this.#line.hidden = this.#before === null;
    if (this.#before === null) return;
    const x = sizeOf(this.#plot).width * (1 - this.#before / this.#span);
    this.#line.style.transform = `translateX(${x}px)`;
  }
}
