// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Who waits, and for what, in the daemon's own sentences.
import {byId, make, setAttribute, setText} from './dom.js';
import {count, duration} from './format.js';
import {swatch} from './palette.js';

const LINGER_MS = 1500;  // short waits come and go faster than anybody reads

export class Waits {
  #list = byId('waits');
  #count = byId('waits-count');
  #model;
  #rows = new Map();
  #nothing = make('li', {class: 'nothing'}, 'Nobody waits.');

  constructor(model) {
    this.#model = model;
  }

  update() {
    const view = this.#model.shown;
    if (!view) return;
    const waiting = view.jobs.filter((job) => job.waits_for !== '');
    setText(this.#count, waiting.length > 0 ? `${count(waiting.length, 'job', 'jobs')} of ${view.jobs.length}` : '');
    setAttribute(this.#list, 'data-count', waiting.length);
    const present = new Set(view.jobs.map((job) => job.id));
    for (const job of waiting) this.#show(job, view.now_ms);
    for (const [id, row] of this.#rows) {
      const over = row.seen < view.now_ms;
      if (over) setText(row.since, 'just now');
      if (!present.has(id) || view.now_ms - row.seen > LINGER_MS) {
        row.item.remove();
        this.#rows.delete(id);
      }
    }
    if (this.#rows.size === 0) {
      if (!this.#nothing.isConnected) this.#list.replaceChildren(this.#nothing);
    } else {
      this.#nothing.remove();
    }
  }

  #show(job, now) {
    let row = this.#rows.get(job.id);
    const band = this.#model.bandOf(job.id);
    if (!row || row.band !== band) {
      row?.item.remove();
      row = {band, title: make('span', {class: 'title'}), since: make('span', {class: 'since'}), code: make('em'), text: make('span')};
      row.item = make('li', {'data-job': job.id}, swatch(band), row.title, row.since,
                      make('span', {class: 'why'}, row.code, row.text));
      this.#rows.set(job.id, row);
      // By number, so that a row stays where it is.
      const next = [...this.#list.children].find((item) => Number(item.dataset.job) > job.id);
      this.#list.insertBefore(row.item, next ?? null);
    }
    row.seen = now;
    setText(row.title, `${job.id} ${this.#model.labelOf(job.id)}`);
    setText(row.since, duration(job.waits_ms));
    setText(row.code, job.code ? `${job.code}: ` : '');
    setText(row.text, job.waits_for);
  }
}
