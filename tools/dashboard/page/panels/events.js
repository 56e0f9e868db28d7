// The process's timeline, newest first.

import { byId, element, setText } from '../elements.js';
import { bytes, clock, count, named, plain } from '../units.js';

const kept = 300;
const words = {
  growth: 'grew', 'give-back': 'shrank', pressure: 'under pressure', limit: 'hit a limit',
  failure: 'failed', check: 'check failed', scope: 'new peak', mark: 'mark',
  completed: 'freed completed', coalesced: 'merged blocks', aged: 'released old',
  callbacks: 'ran callbacks', uncached: 'released unused', waited: 'waited',
  allocated: 'new block', recycled: 'block reused', freed: 'block freed', profile: 'in use',
  plan: 'new plan', drift: 'left its plan',
};

export class Events {
  #list; #none; #last = 0; #lost = 0;

  constructor() {
    this.#list = element('ol', { class: 'events' });
    this.#none = element('p', { class: 'none', text: 'no events yet' });
    byId('events').append(element('div',
      { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Events' },
      [this.#list, this.#none]));
  }

  clear() {
    this.#list.replaceChildren();
    this.#last = this.#lost = 0;
    this.#showLost();
  }

  add({ entries, lost }) {
    this.#lost += lost ?? 0;
    for (const entry of entries) {
      if (entry.number <= this.#last) continue;
      this.#last = entry.number;
      this.#list.prepend(this.#line(entry));
    }
    while (this.#list.children.length > kept) this.#list.lastElementChild.remove();
    this.#showLost();
  }

  #line({ time_ns, kind, name, bytes: size, limit, thread }) {
    const known = Object.hasOwn(words, kind);
    const text = [size ? bytes(size) : '', limit && limit !== 'none' ? plain(limit) : '']
      .filter(Boolean).join(', ');
    const time = clock(time_ns / 1e9, true);
    return element('li', { class: known ? kind : '', title: `${time}, thread ${thread}` }, [
      element('time', { class: 'figure', text: time.slice(0, 8) },
        [element('small', { text: time.slice(8) })]),
      element('span', { class: 'kind', text: known ? words[kind] : plain(kind) }),
      element('span', { class: 'name', text: named(name, '') }),
      element('span', { class: 'figure size', text }),
    ]);
  }

  #showLost() {
    this.#none.hidden = this.#list.children.length > 0;
    setText(byId('lost'), this.#lost ? `newest first; ${count(this.#lost)} older ones were overwritten`
      : 'newest first');
  }
}
