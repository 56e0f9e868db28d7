// Which call stacks hold the memory: the flame graph of `tensorpool profile`, now or at a time of
// which the server kept a profile.

import { byId, element, setText } from '../elements.js';
import { clock } from '../units.js';

const step_ms = 10_000;  // the server keeps one profile per step

export class CallStacks {
  #process = null; #times = []; #chosen = null;  // null: now
  #wanted = null; #shown = null; #loading = false;  // addresses of graphs
  #slider = element('input', { type: 'range', min: 0, 'aria-label': 'Time of the flame graph' });
  #when = element('output', { class: 'figure' });
  #compare = element('input', { type: 'checkbox' });
  #now = element('button', { type: 'button', text: 'now', title: 'read the profile again' });
  #frame = element('iframe', { title: 'Flame graph', loading: 'lazy' });
  #controls = element('div', { class: 'row' }, [this.#now, this.#slider, this.#when,
    element('label', {}, [this.#compare, ' compare with the oldest one'])]);
  #problem = element('p', { class: 'none' });

  constructor() {
    byId('stacks').append(this.#controls, this.#frame, this.#problem);
    this.#slider.addEventListener('input', () => this.#describe());
    this.#slider.addEventListener('change', () => this.#choose(this.#times[this.#slider.value] ?? null));
    this.#compare.addEventListener('change', () => this.#choose(this.#chosen));
    this.#now.addEventListener('click', () => this.#choose(null));
    this.#frame.addEventListener('load', () => { this.#loading = false; this.#show(); });
    setInterval(() => { if (!document.hidden) this.#load(); }, step_ms);
  }

  /** Shows the process as it is now. */
  async follow(process) {
    this.#process = process;
    this.#times = [];
    this.#wanted = null;
    await this.#load();
  }

  /** Reads which profiles are kept. */
  async #load() {
    const process = this.#process;
    if (process === null) return;
    const response = await fetch(`/api/profile/times?process=${process}`, { cache: 'no-store' }).catch(() => null);
    const answer = await response?.json().catch(() => null);
    if (process !== this.#process || !response) return;
    this.#controls.hidden = this.#frame.hidden = !response.ok;
    this.#problem.hidden = response.ok;
    setText(this.#problem, response.ok ? '' : answer?.error ?? `the server answered ${response.status}`);
    if (!response.ok) return;
    this.#times = answer.times_unix_ms;
    if (this.#wanted === null) this.#choose(null);
    this.#place();
  }

  #choose(time) {
    this.#chosen = time;
    const at = time === null ? '' : `&time=${time}`;
    const before = this.#compare.checked && this.#times.length > 0 ? `&before=${this.#times[0]}` : '';
    this.#wanted = `/flame-graph?process=${this.#process}${at}${before}`;
    this.#shown = null;  // also reads the same address again
    this.#place();
    this.#show();
  }

  /** Loads one graph at a time, because browsers drop an address that comes while another loads. Only
      the first becomes an entry of the browser's history. */
  #show() {
    if (this.#loading || this.#wanted === null || this.#shown === this.#wanted) return;
    this.#loading = true;
    this.#shown = this.#wanted;
    if (this.#frame.hasAttribute('src')) this.#frame.contentWindow.location.replace(this.#wanted);
    else this.#frame.src = this.#wanted;
  }

  /** Puts the slider to the chosen time. Its last position is now. */
  #place() {
    const at = this.#times.indexOf(this.#chosen);
    this.#slider.max = this.#times.length;
    this.#slider.value = this.#chosen === null ? this.#times.length : Math.max(at, 0);
    this.#describe();
  }

  #describe() {
    const time = this.#times[this.#slider.value];
    setText(this.#when, time === undefined ? 'now' : clock(time / 1000));
  }
}
