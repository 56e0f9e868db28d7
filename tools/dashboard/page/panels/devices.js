// Allocators of device memory, and the figures of one beside PyTorch's words for them.

import { byId, say } from '../elements.js';
import { metrics } from '../metrics.js';  // made by the server, from the library's table
import { Rows } from '../rows.js';
import { bytes, count, named, percent, plain } from '../units.js';

/** A column of one metric. */
const number = (name, metric, kind = 'number') => ({
  name, class: kind, about: metrics.device[metric].sentence, value: (of) => of[metric],
  text: (of) => bytes(of[metric]),
});

const hits = ({ parked_hits, free_hits, allocations }) =>
  (allocations ? Math.min(1, (parked_hits + free_hits) / allocations) : NaN);

/** PyTorch's name of a metric, without which of its values it is. */
const word = (metric) => metrics.device[metric].pytorch.split('.')[0];

/** `[ours, the metric that PyTorch names, now, peak, came, went]`; '' where there is none. */
const words = (of) => [
  ['in use', 'in_use_bytes', bytes(of.in_use_bytes), bytes(of.peak_in_use_bytes),
    bytes(of.allocated_bytes), bytes(of.deallocated_bytes)],
  ['asked for', 'requested_in_use_bytes', bytes(of.requested_in_use_bytes), '', bytes(of.requested_bytes), ''],
  ['and deferred', 'peak_active_bytes', bytes(of.in_use_bytes + of.deferred_bytes), bytes(of.peak_active_bytes), '', ''],
  ['capacity', 'capacity_bytes', bytes(of.capacity_bytes), bytes(of.peak_capacity_bytes),
    bytes(of.grown_bytes), bytes(of.given_back_bytes)],
  ['split', 'split_bytes', bytes(of.split_bytes), '', '', ''],
  ['deferred', 'deferred_bytes', bytes(of.deferred_bytes), '', '', ''],
  ['blocks', 'allocations', count(Math.max(0, of.allocations - of.deallocations)), '',
    count(of.allocations), count(of.deallocations)],
  ['slabs', 'slabs', count(of.slabs), '', count(of.growths), count(of.give_backs)],
  ['waits', 'synchronizations', '', '', count(of.synchronizations), ''],
  ['pressures', 'pressures', '', '', count(of.pressures), ''],
  ['failures', 'failures', '', '', count(of.failures), ''],
].map(([ours, metric, ...values]) => ({ texts: [ours, word(metric), ...values] }));

const column = (name, index, kind) => ({ name, class: kind, text: ({ texts }) => texts[index] });

export class Devices {
  #card = byId('devices'); #wordsCard = byId('device-words'); #chosen = null; #devices = [];
  #rows; #words;

  constructor() {
    this.#rows = new Rows(this.#card, {
      label: 'Allocators of device memory', none: 'none now', key: ({ id }) => id,
      press: ({ id }) => this.#choose(id),
      columns: [
        { name: 'allocator', class: 'name', text: ({ name }) => named(name), title: ({ name }) => plain(name) },
        { name: 'device', class: 'word', text: ({ device }) => plain(device) },
        number('in use', 'in_use_bytes'),
        number('capacity', 'capacity_bytes'),
        number('free', 'free_bytes'),
        number('deferred', 'deferred_bytes', 'number extra'),
        { name: 'hits', class: 'number extra', value: hits, text: (of) => percent(hits(of)) },
      ],
    });
    this.#words = new Rows(this.#wordsCard, {
      label: 'Our words and PyTorch’s', none: '', key: ({ texts }) => texts[0],
      columns: [column('ours', 0, 'name'), column('PyTorch', 1, 'pytorch'), column('now', 2, 'number'),
        column('peak', 3, 'number'), column('came', 4, 'number extra'), column('went', 5, 'number extra')],
    });
  }

  #choose(id) {
    this.#chosen = id;
    this.update(this.#devices);
  }

  /** Where there are none, the panels are not shown. */
  update(devices) {
    this.#devices = devices;
    this.#card.hidden = this.#wordsCard.hidden = devices.length === 0;
    const one = devices.find(({ id }) => id === this.#chosen) ?? devices[0];
    this.#rows.update(devices, ({ id }) => id === one?.id);
    say(byId('device-name'), one ? `of ${named(one.name)} on ${plain(one.device)}` : '');
    this.#words.update(one ? words(one) : []);
  }
}
