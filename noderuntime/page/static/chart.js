// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Memory over time: bands of held bytes, one on the other, under the line of the pool.
import {byId, cssColour, fitCanvas, make, setText, sizeOf} from './dom.js';
import {bytes} from './format.js';
import {BANDS, fillOf} from './palette.js';
import {Columns} from './timeline.js';

const AXIS = 22;  // below, for the time
const TOP = 14;   // above the pool's line

/** Steps of the axis: powers of two, or three quarters of one, at most five of them. */
function stepFor(pool) {
  let step = 1;
  while (pool / step > 5) step *= 2;
  return step;
}

export class Chart {
  #canvas;
  #model;
  #columns;
  #amounts = byId('amounts');
  seconds = 30;

  constructor(canvas, model) {
    this.#canvas = canvas;
    this.#model = model;
    this.#columns = new Columns(model.timeline, model.bandOf);
  }

  /** Where in the canvas so many bytes are, in CSS pixels from its top. */
  yOf(value) {
    const view = this.#model.shown;
    const height = sizeOf(this.#canvas).height - AXIS;
    return height - (value / (view?.pool || 1)) * (height - TOP);
  }

  draw() {
    const {context, width, height} = fitCanvas(this.#canvas);
    context.clearRect(0, 0, width, height);
    const model = this.#model;
    if (!model.shown || width < 10) return;
    const end = model.end;
    const span = this.seconds * 1000;
    const scale = width / span;
    const columnMs = Math.max(20, Math.round((span / width) * 2));
    this.#columns.prepare(columnMs, model.bandsVersion);

    this.#drawGrid(context, width, height, end, scale);
    const first = Math.floor((end - span) / columnMs);
    const last = Math.floor(end / columnMs);
    const columns = [];
    for (let number = first; number <= last; ++number) {
      const means = this.#columns.get(number);
      const x = width - (end - number * columnMs) * scale;
      if (means) columns.push([x, means]);
    }
    this.#columns.forgetBefore(first - 8000);
    this.#drawBands(context, columns, columnMs * scale, Math.min(width, width - (end - model.timeline.until) * scale), end * scale);
    this.#drawLines(context, width);
  }

  #drawBands(context, columns, columnWidth, right, offset) {
    if (columns.length === 0) return;
    const base = columns.map(() => 0);
    const line = cssColour('--panel');
    const from = Math.max(0, columns[0][0]);
    for (let band = 0; band <= BANDS; ++band) {
      if (!columns.some(([, means]) => means[band] > 0)) continue;
      const top = new Path2D();
      const area = new Path2D();
      columns.forEach(([x, means], i) => {
        const y = this.yOf(base[i] + means[band]);
        const begin = Math.max(from, x);
        const stop = Math.min(x + columnWidth, right);
        if (i === 0) { area.moveTo(begin, y); top.moveTo(begin, y); }
        for (const path of [area, top]) { path.lineTo(begin, y); path.lineTo(stop, y); }
      });
      for (let i = columns.length - 1; i >= 0; --i) {
        const y = this.yOf(base[i]);
        area.lineTo(Math.min(columns[i][0] + columnWidth, right), y);
        area.lineTo(Math.max(from, columns[i][0]), y);
      }
      area.closePath();
      const fill = fillOf(context, band, -(offset % 8));
      context.fillStyle = fill;
      context.fill(area);
      context.lineWidth = 1;
      context.strokeStyle = line;
      context.stroke(top);
      columns.forEach(([, means], i) => { base[i] += means[band]; });
    }
  }

  #drawGrid(context, width, height, end, scale) {
    const pool = this.#model.shown.pool;
    const bottom = height - AXIS;
    context.lineWidth = 1;
    context.font = '12px ' + getComputedStyle(document.body).fontFamily;
    context.textBaseline = 'alphabetic';
    context.strokeStyle = cssColour('--grid');
    const step = stepFor(pool);
    const labels = [];
    for (let value = 0; value < pool - step / 4; value += step) {
      const y = Math.round(this.yOf(value)) + 0.5;
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.stroke();
      labels.push([value > 0 ? bytes(value) : '0', y]);
    }
    this.#showAmounts(labels);
    let every = {10: 2, 30: 5, 60: 10, 120: 20}[this.seconds] * 1000;
    while (every * scale < 56) every *= 2;
    context.fillStyle = cssColour('--quiet');
    context.textAlign = 'center';
    for (let before = 0; before <= this.seconds * 1000; before += every) {
      const x = width - before * scale;
      const text = before === 0 ? (this.#model.paused ? 'paused' : 'now') : `−${before / 1000} s`;
      context.textAlign = before === 0 ? 'right' : x < 24 ? 'left' : 'center';
      context.fillText(text, x, height - 6);
      context.beginPath();
      context.moveTo(Math.round(x) - 0.5, bottom);
      context.lineTo(Math.round(x) - 0.5, bottom + 4);
      context.stroke();
    }
  }

  /** Beside the chart, each at its line. */
  #showAmounts(labels) {
    const spans = this.#amounts.children;
    while (spans.length > labels.length) spans[spans.length - 1].remove();
    while (spans.length < labels.length) this.#amounts.append(make('span'));
    labels.forEach(([text, y], i) => {
      setText(spans[i], text);
      spans[i].style.top = `${y}px`;
    });
  }

  #drawLines(context, width) {
    const view = this.#model.shown;
    const rule = (value, dash) => {
      const y = Math.round(this.yOf(value)) + 0.5;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.stroke();
      context.setLineDash([]);
    };
    context.strokeStyle = cssColour('--pool');
    context.lineWidth = 1.5;
    rule(view.pool, []);
    if (view.budget < view.pool) rule(view.budget, [6, 4]);
  }
}
