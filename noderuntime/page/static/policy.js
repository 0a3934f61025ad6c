// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The policy and its lanes: what is in force, and another one, for who has the token.
import {byId, setText} from './dom.js';
import {count} from './format.js';
import {ask} from './stream.js';

const MEANINGS = {
  flow: 'A gate opens as soon as it is safe.',
  timeshift: 'Iterations begin so that their predicted use stays in the budget.',
  nodegroup: 'Groups that take memory run beside groups that give it back.',
  temporal: 'One iteration at a time.',
  spatial: 'Each job’s limit is kept for it, and nobody waits.',
  auto: 'Measures the ways of sharing on the jobs themselves and keeps the best.',
};

export class Policy {
  #dialog = byId('policy-dialog');
  #open = byId('policy-open');
  #select = byId('policy');
  #lanes = byId('lane-count');
  #next = byId('policy-next');
  #problem = byId('policy-problem');
  #model;
  #say;
  #asked = false;  // the next press is the confirmation
  #may = false;

  /** say(text): to who listens. */
  constructor(model, say) {
    this.#model = model;
    this.#say = say;
    this.#open.disabled = true;
    this.#open.addEventListener('click', () => this.#show());
    byId('policy-cancel').addEventListener('click', () => this.#dialog.close());
    this.#next.addEventListener('click', () => (this.#asked ? this.#change() : this.#confirm()));
    for (const input of [this.#select, this.#lanes]) {
      input.addEventListener('input', () => this.#reset());
      input.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && input === this.#lanes) this.#next.click();
      });
    }
  }

  setAccess({policies, max_lanes: most, may_change: may}) {
    this.#may = may;
    const why = may ? '' : 'Read-only. Open the address that sluice page prints to change things.';
    setText(byId('policy-why'), why);
    this.#open.title = why;
    setText(byId('max-lanes'), String(most));
    this.#lanes.max = most;
    if (this.#select.options.length === 0) {
      for (const name of policies) this.#select.append(new Option(name, name));
    }
  }

  /** Whether there is a daemon that could be told. */
  setReachable(reachable) {
    this.#open.disabled = !(this.#may && reachable);
  }

  update() {
    const view = this.#model.shown;
    if (!view) return;
    setText(byId('policy-now'), view.policy || '–');
    setText(byId('lanes-now'), view.lanes > 0 ? count(view.lanes, 'lane', 'lanes') : '');
  }

  #show() {
    const view = this.#model.view;
    if (!view || !this.#may) return;
    this.#select.value = view.policy;
    this.#lanes.value = view.lanes;
    this.#reset();
    this.#dialog.showModal();
  }

  #reset() {
    this.#asked = false;
    setText(this.#next, 'Change');
    setText(this.#problem, '');
    setText(byId('policy-help'), MEANINGS[this.#select.value] ?? '');
  }

  #confirm() {
    const view = this.#model.view;
    const lanes = Number(this.#lanes.value);
    if (!Number.isInteger(lanes) || lanes < 1 || lanes > Number(this.#lanes.max)) {
      setText(this.#problem, `Lanes: allowed: 1 to ${this.#lanes.max}`);
      this.#lanes.focus();
      return;
    }
    if (this.#select.value === view.policy && lanes === view.lanes) {
      setText(this.#problem, 'That is what is in force.');
      return;
    }
    this.#asked = true;
    setText(this.#problem, '');
    setText(byId('policy-help'), `From ${view.policy} with ${count(view.lanes, 'lane', 'lanes')} to ${this.#select.value} with ${count(lanes, 'lane', 'lanes')}, for every job on GPU ${view.gpu}.`);
    setText(this.#next, 'Yes, change it');
  }

  async #change() {
    const wanted = {gpu: this.#model.view.gpu, policy: this.#select.value, lanes: Number(this.#lanes.value)};
    this.#next.disabled = true;
    try {
      const {policy, lanes} = await ask('api/policy', wanted);
      this.#dialog.close();
      this.#say(`The policy is ${policy} now, with ${count(lanes, 'lane', 'lanes')}.`);
    } catch (error) {
      this.#reset();
      setText(this.#problem, error.message);
    } finally {
      this.#next.disabled = false;
    }
  }
}
