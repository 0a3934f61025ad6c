// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The connection to the gateway: server-sent events while the page is seen, and questions in between.

const HIDDEN_MS = 10_000;  // a page that nobody sees for so long asks no more
const SILENT_MS = 4_000;   // events come at 10 Hz

let token = '';

/** The token of the address, which stands behind the # and so is never sent with a request by itself. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  try {
    if (given) {
      sessionStorage.setItem('sluice-token', given);
      history.replaceState(null, '', location.pathname + location.search);
    }
    token = given || sessionStorage.getItem('sluice-token') || '';
  } catch {
    token = given || '';
  }
  return token !== '';
}

/** What the gateway answers; throws an Error with its sentence. */
export async function ask(path, body) {
  const request = {headers: token ? {'X-Sluice-Token': token} : {}, cache: 'no-store'};
  if (body) {
    request.method = 'POST';
    request.headers['Content-Type'] = 'application/json';
    request.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, request);
  } catch {
    throw new Error('The gateway does not answer.');
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `The gateway answers ${response.status}.`);
  return answer;
}

/**
 * on.start(view), on.live(view): what the daemon says. on.state(name, text): connecting, live, gone (no daemon),
 * lost (no gateway; tries again) or refused.
 */
export class Stream {
  #on;
  #gpu = null;
  #source = null;
  #retry = 0;
  #hide = 0;
  #heard = 0;

  constructor(on) {
    this.#on = on;
    document.addEventListener('visibilitychange', () => {
      clearTimeout(this.#hide);
      if (document.hidden) {
        this.#hide = setTimeout(() => this.#close(), HIDDEN_MS);
      } else if (!this.#source) {
        this.open(this.#gpu);
      }
    });
    setInterval(() => {
      const silent = this.#source && this.#source.readyState === EventSource.OPEN;
      if (silent && performance.now() - this.#heard > SILENT_MS) this.#on.state('lost', 'Nothing was heard for some seconds.');
    }, 1000);
  }

  open(gpu) {
    this.#close();
    this.#gpu = gpu;
    this.#on.state('connecting', '');
    const source = new EventSource(gpu === null ? 'api/live' : `api/live?gpu=${gpu}`);
    this.#source = source;
    for (const event of ['start', 'live']) {
      source.addEventListener(event, (message) => {
        this.#heard = performance.now();
        this.#on.state('live', '');
        this.#on[event](JSON.parse(message.data));
      });
    }
    source.addEventListener('gone', (message) => {
      this.#heard = Infinity;
      this.#on.state('gone', JSON.parse(message.data).text);
    });
    source.addEventListener('error', () => {
      // The browser tries again by itself, unless it was refused.
      if (source.readyState !== EventSource.CLOSED) {
        this.#on.state('lost', 'The gateway does not answer.');
        return;
      }
      this.#explain();
    });
  }

  /** An event source does not say why it was refused. */
  async #explain() {
    this.#close();
    try {
      const answer = await fetch(this.#gpu === null ? 'api/live' : `api/live?gpu=${this.#gpu}`);
      const text = answer.ok ? '' : (await answer.json()).error;
      answer.body?.cancel().catch(() => {});
      this.#on.state(text ? 'refused' : 'lost', text || 'The connection ended.');
    } catch {
      this.#on.state('lost', 'The gateway does not answer.');
    }
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.open(this.#gpu), 3000);
  }

  #close() {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
  }
}
