// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Who lends to whom, as a graph from left to right; the same in words for who does not see it.
import {byId, make, makeSvg, setText, sizeOf} from './dom.js';
import {bytes, count} from './format.js';
import {colourOf} from './palette.js';

const MOST = 6;
const ROW = 30;
const NODE = 150;

function middle(index, of, height) {
  return (height / of) * (index + 0.5);
}

export class Loans {
  #box = byId('loans');
  #count = byId('loans-count');
  #model;
  #drawn = '';

  constructor(model) {
    this.#model = model;
  }

  update() {
    const view = this.#model.shown;
    if (!view) return;
    const width = Math.max(320, sizeOf(this.#box).width);
    const key = JSON.stringify([view.loans, width, this.#model.bandsVersion]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    const loans = [...view.loans].sort((a, b) => b[2] - a[2]);
    setText(this.#count, loans.length > 0 ? `${bytes(view.lent)} in ${count(loans.length, 'loan', 'loans')}` : '');
    if (loans.length === 0) {
      this.#box.replaceChildren(make('p', {class: 'nothing'}, 'Nothing is lent at the moment.'));
      return;
    }
    const shown = loans.slice(0, MOST);
    const words = make('ul', {class: 'visually-hidden'});
    for (const [lender, borrower, amount] of loans) {
      words.append(make('li', {}, `${this.#name(lender)} lends ${bytes(amount)} to ${this.#name(borrower)}`));
    }
    const parts = [this.#graph(shown, width), words];
    if (loans.length > shown.length) {
      const rest = loans.slice(MOST).reduce((sum, loan) => sum + loan[2], 0);
      parts.push(make('p', {class: 'more'}, `and ${loans.length - MOST} more: ${bytes(rest)}`));
    }
    this.#box.replaceChildren(...parts);
  }

  #name(id) {
    return id === 0 ? 'others' : `${id} ${this.#model.labelOf(id)}`;
  }

  #graph(loans, width) {
    const byNumber = (a, b) => a - b;
    const lenders = [...new Set(loans.map((loan) => loan[0]))].sort(byNumber);
    const borrowers = [...new Set(loans.map((loan) => loan[1]))].sort(byNumber);
    const rows = Math.max(lenders.length, borrowers.length);
    const height = Math.max(rows * ROW, 80);
    const most = Math.max(...loans.map((loan) => loan[2]));
    const svg = makeSvg('svg', {viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': 'true'});
    const right = width - NODE - 10;
    const labels = [];
    loans.forEach(([lender, borrower, amount], i) => {
      const y0 = middle(lenders.indexOf(lender), lenders.length, height);
      const y1 = middle(borrowers.indexOf(borrower), borrowers.length, height);
      const thick = 2 + 12 * Math.sqrt(amount / most);
      const half = (NODE + right) / 2;
      svg.append(
          makeSvg('path', {d: `M${NODE} ${y0}C${half} ${y0} ${half} ${y1} ${right} ${y1}`, 'stroke-width': thick.toFixed(1)}),
          makeSvg('path', {class: 'head-of-arrow', d: `M${right} ${y1 - 6}l9 6l-9 6z`}));
      // Not all in the middle, where curves cross.
      const at = 0.3 + 0.4 * (loans.length > 1 ? i / (loans.length - 1) : 0.5);
      const bend = at * at * (3 - 2 * at);
      const text = makeSvg('text', {class: 'amount', x: NODE + (right - NODE) * at, y: y0 + (y1 - y0) * bend + 4, 'text-anchor': 'middle'});
      text.textContent = bytes(amount);
      labels.push(text);
    });
    lenders.forEach((id, i) => svg.append(this.#node(id, 0, middle(i, lenders.length, height), 'end')));
    borrowers.forEach((id, i) => svg.append(this.#node(id, width - NODE, middle(i, borrowers.length, height), 'start')));
    svg.append(...labels);
    return svg;
  }

  #node(id, x, y, anchor) {
    const edge = anchor === 'end' ? x + NODE - 8 : x;
    const text = makeSvg('text', {x: anchor === 'end' ? x + NODE - 16 : x + 16, y: y + 4.5, 'text-anchor': anchor});
    const name = this.#name(id);
    text.textContent = name.length > 19 ? name.slice(0, 18) + '…' : name;
    const title = makeSvg('title');
    title.textContent = name;
    return makeSvg('g', {}, title, makeSvg('rect', {x: edge, y: y - 11, width: 8, height: 22, rx: 2, fill: colourOf(this.#model.bandOf(id))}), text);
  }
}
