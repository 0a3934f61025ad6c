// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// One job: all that the daemon says of it, asked for once.
import {byId, make, makeSvg} from './dom.js';
import {bytes, duration, nanoseconds} from './format.js';
import {ask} from './stream.js';

const AMOUNTS = [
  ['held_bytes', 'Held'], ['peak_held_bytes', 'Most held'], ['live_bytes', 'Live'], ['claim_bytes', 'Claim'],
  ['limit_bytes', 'Limit'], ['request_bytes', 'Request'], ['base_bytes', 'Base'], ['unfenced_bytes', 'Unfenced'],
  ['spare_bytes', 'Spare'], ['away_bytes', 'In host memory'], ['outside_bytes', 'Outside the pool'],
];
const TOTALS = [
  ['iterations', 'Iterations'], ['claim_raises', 'Claim raises'], ['deviations', 'Deviations'], ['evictions', 'Moved to host memory'],
  ['returns', 'Brought back'],
];

function facts(pairs) {
  const list = make('dl', {class: 'facts'});
  for (const [name, value] of pairs) list.append(make('div', {}, make('dt', {}, name), make('dd', {}, value)));
  return list;
}

function histogram(title, figures, bounds) {
  if (!figures?.counts || !bounds) return [];
  const total = figures.counts.reduce((sum, number) => sum + number, 0);
  if (total === 0) return [];
  const most = Math.max(...figures.counts);
  const rows = make('div', {class: 'histogram'});
  figures.counts.forEach((number, i) => {
    if (number === 0) return;
    const bound = i < bounds.length ? `≤ ${nanoseconds(bounds[i])}` : `> ${nanoseconds(bounds[bounds.length - 1])}`;
    const bar = makeSvg('svg', {viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
                        makeSvg('rect', {width: Math.max(0.5, (number / most) * 100), height: 10, rx: 1}));
    rows.append(make('span', {}, bound), bar, make('span', {}, number.toLocaleString('en')));
  });
  return [make('h3', {}, `${title}: ${total.toLocaleString('en')}, ${nanoseconds((figures.sum_ns ?? 0) / total)} on average`), rows];
}

function counts(title, numbers) {
  const pairs = Object.entries(numbers ?? {}).filter(([, number]) => number > 0);
  return pairs.length > 0 ? [make('h3', {}, title), facts(pairs.map(([name, number]) => [name, number.toLocaleString('en')]))] : [];
}

function events(list) {
  if (!list || list.length === 0) return [];
  const items = make('ul', {class: 'events', tabindex: '0', 'aria-label': 'Latest events'});
  for (const event of [...list].reverse()) {
    const time = new Date(event.unix_ms);
    items.append(make('li', {}, make('time', {datetime: time.toISOString()}, time.toLocaleTimeString([], {hour12: false})),
                      make('b', {}, event.kind ?? ''), make('span', {}, event.text ?? '')));
  }
  return [make('h3', {}, 'Latest events'), items];
}

export class Details {
  #dialog = byId('details');
  #title = byId('details-title');
  #body = byId('details-body');

  constructor() {
    byId('details-close').addEventListener('click', () => this.#dialog.close());
  }

  /** label: what it is called here. */
  async open(id, gpu, label) {
    this.#title.textContent = `Job ${id}: ${label}`;
    this.#body.replaceChildren(make('p', {class: 'hint'}, 'Asking the daemon…'));
    this.#dialog.showModal();
    try {
      this.#show(await ask(`api/jobs/${id}?gpu=${gpu}`));
    } catch (error) {
      this.#body.replaceChildren(make('p', {class: 'problem', role: 'alert'}, error.message));
    }
  }

  #show({job, bounds_ns: bounds}) {
    const figures = job.figures ?? {};
    const parts = [make('p', {class: 'hint'}, job.name)];
    const why = job.waiting?.reason ?? job.refused;
    parts.push(make('p', {}, why ? `${job.phase}: ${why}${job.waiting?.since_ms ? ` (for ${duration(job.waiting.since_ms)})` : ''}` : job.phase));
    parts.push(facts(AMOUNTS.filter(([key]) => job[key] !== undefined).map(([key, name]) => [name, bytes(job[key])])));
    const totals = TOTALS.filter(([key]) => figures[key] !== undefined).map(([key, name]) => [name, figures[key].toLocaleString('en')]);
    for (const [key, name] of [['lent_total_bytes', 'Lent in all'], ['borrowed_total_bytes', 'Borrowed in all']]) {
      if (figures[key] !== undefined) totals.push([name, bytes(figures[key])]);
    }
    if (job.profile) {
      totals.push(['Iteration by profile', nanoseconds(job.profile.iteration_ns)], ['Credit', nanoseconds(job.profile.credit_ns)]);
    }
    if (totals.length > 0) parts.push(make('h3', {}, 'Since it began'), facts(totals));
    parts.push(...counts('Waits by reason', figures.waits), ...counts('Refusals by reason', figures.refusals));
    parts.push(...histogram('Waits at gates', figures.gate_wait, bounds?.wait), ...histogram('Waits for leases', figures.lease_wait, bounds?.wait));
    parts.push(...events(figures.events));
    this.#body.replaceChildren(...parts);
  }
}
