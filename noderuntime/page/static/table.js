// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// All jobs with their numbers: what the chart shows, for who reads rather than looks.
import {byId, make, setAttribute, setText} from './dom.js';
import {count, duration, numberLike, unitLike} from './format.js';
import {swatch} from './palette.js';

/** key: of the daemon's words; how a cell says it; by what it sorts. */
const COLUMNS = [
  {key: 'name', title: 'Job', text: true, sort: (job) => job.id},
  {key: 'phase', title: 'Phase', text: true, say: (job) => job.phase},
  {key: 'waits_ms', title: 'Waits for', text: true, class: 'waiting', say: (job) => (job.waits_for ? `${job.code || 'something'} ${duration(job.waits_ms)}` : '')},
  {key: 'gate', title: 'Gate', say: (job) => (job.gates > 0 ? `${Math.min(job.gate + 1, job.gates)}/${job.gates}` : '–')},
  {key: 'iteration', title: 'Iteration', say: (job) => job.iteration.toLocaleString('en')},
  {key: 'rate', title: 'Per second', say: (job, view, model) => model.rateOf(job.id)?.toFixed(2) ?? '–', sort: (job, model) => model.rateOf(job.id) ?? 0},
  {key: 'held', title: 'Held', bytes: true},
  {key: 'live', title: 'Live', bytes: true},
  {key: 'claim', title: 'Claim', bytes: true},
  {key: 'limit', title: 'Limit', bytes: true},
  {key: 'request', title: 'Request', bytes: true},
  {key: 'base', title: 'Base', bytes: true},
  {key: 'lent', title: 'Lent', bytes: true},
  {key: 'borrowed', title: 'Borrowed', bytes: true},
];

export class Table {
  #body = byId('table-body');
  #count = byId('jobs-count');
  #none = byId('table-none');
  #filter = byId('filter');
  #model;
  #open;
  #rows = new Map();
  #sort = {column: COLUMNS[0], up: true};
  #heads = [];

  /** open(job): shows one. */
  constructor(model, open) {
    this.#model = model;
    this.#open = open;
    for (const column of COLUMNS) {
      const button = make('button', {type: 'button'}, column.title);
      const cell = make('th', {scope: 'col', class: column.text ? 'text' : 'number'}, button);
      button.addEventListener('click', () => {
        const again = this.#sort.column === column;
        this.#sort = {column, up: again ? !this.#sort.up : Boolean(column.text)};
        this.update();
      });
      this.#heads.push(cell);
    }
    byId('table-head').append(...this.#heads);
    this.#filter.addEventListener('input', () => this.update());
  }

  update() {
    const view = this.#model.shown;
    if (!view) return;
    const words = this.#filter.value.trim().toLowerCase();
    const matches = (job) => words === '' || `${job.id} ${job.name} ${job.phase} ${job.code}`.toLowerCase().includes(words);
    const jobs = view.jobs.filter(matches);
    const {column, up} = this.#sort;
    const by = column.sort ?? ((job) => job[column.key]);
    const order = (a, b) => (a > b ? 1 : a < b ? -1 : 0);
    jobs.sort((a, b) => (up ? 1 : -1) * order(by(a, this.#model), by(b, this.#model)) || a.id - b.id);

    COLUMNS.forEach((each, i) => {
      if (each === column) setAttribute(this.#heads[i], 'aria-sort', up ? 'ascending' : 'descending');
      else this.#heads[i].removeAttribute('aria-sort');
    });
    const kept = new Set(jobs.map((job) => job.id));
    for (const [id, row] of this.#rows) {
      if (kept.has(id)) continue;
      row.item.remove();
      this.#rows.delete(id);
    }
    jobs.forEach((job, i) => {
      const row = this.#row(job);
      this.#fill(row, job, view);
      if (this.#body.children[i] !== row.item) this.#body.insertBefore(row.item, this.#body.children[i] ?? null);
    });
    setAttribute(this.#body, 'data-seq', view.seq);
    const shown = words ? `${jobs.length} of ${count(view.jobs.length, 'job', 'jobs')}` : count(jobs.length, 'job', 'jobs');
    setText(this.#count, `${shown}, amounts in ${unitLike(view.pool)}`);
    this.#none.hidden = jobs.length > 0;
    setText(this.#none, view.jobs.length > 0 ? `No job has “${this.#filter.value.trim()}” in its name, number or phase.` : 'No job yet.');
  }

  #row(job) {
    const band = this.#model.bandOf(job.id);
    let row = this.#rows.get(job.id);
    if (row) {
      if (row.band !== band) {
        row.band = band;
        row.swatch.replaceWith(row.swatch = swatch(band));
      }
      return row;
    }
    row = {band, swatch: swatch(band), name: make('span')};
    const button = make('button', {type: 'button', class: 'job', title: job.name}, row.swatch,
                        make('span', {class: 'number'}, String(job.id)), row.name);
    button.addEventListener('click', () => this.#open(job.id));
    row.cells = COLUMNS.map((column) => make('td', {class: `${column.text ? 'text' : 'number'} ${column.class ?? column.key}`, 'data-key': column.key}));
    row.cells[0].append(button);
    row.item = make('tr', {'data-job': job.id}, ...row.cells);
    this.#rows.set(job.id, row);
    return row;
  }

  #fill(row, job, view) {
    setText(row.name, this.#model.labelOf(job.id));
    COLUMNS.forEach((column, i) => {
      if (i === 0) return;
      const cell = row.cells[i];
      const value = job[column.key];
      setText(cell, column.bytes ? numberLike(value, view.pool) : column.say(job, view, this.#model));
      if (value !== undefined) setAttribute(cell, 'data-value', value);
      if (column.bytes) cell.classList.toggle('zero', value === 0);
    });
  }
}
