// The process's timeline, newest first.

import { byId, element, say } from '../elements.js';
import { bytes, clock, count, named, plain } from '../units.js';

const kept = 300;
const words = {
  growth: 'got memory', 'give-back': 'gave back', pressure: 'under pressure', limit: 'met a limit',
  failure: 'failed', check: 'check fired', scope: 'new peak', mark: 'mark',
  completed: 'took what was done', coalesced: 'joined free blocks', aged: 'gave back old',
  callbacks: 'asked callbacks', uncached: 'gave back unused', waited: 'waited for it',
  allocated: 'new block', recycled: 'block again', freed: 'block freed', profile: 'in use',
  plan: 'has a plan', drift: 'left its plan',
};

export class Events {
  #list; #none; #last = 0; #lost = 0;

  constructor() {
    this.#list = element('ol', { class: 'events' });
    this.#none = element('p', { class: 'none', text: 'nothing has happened yet that matters' });
    byId('events').append(element('div',
      { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Events' },
      [this.#list, this.#none]));
  }

  clear() {
    this.#list.replaceChildren();
    this.#last = this.#lost = 0;
    this.#tell();
  }

  add({ entries, lost }) {
    this.#lost += lost ?? 0;
    for (const entry of entries) {
      if (entry.number <= this.#last) continue;
      this.#last = entry.number;
      this.#list.prepend(this.#line(entry));
    }
    while (this.#list.children.length > kept) this.#list.lastElementChild.remove();
    this.#tell();
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

  #tell() {
    this.#none.hidden = this.#list.children.length > 0;
    say(byId('lost'), this.#lost ? `newest first; ${count(this.#lost)} older were overwritten`
      : 'newest first');
  }
}
