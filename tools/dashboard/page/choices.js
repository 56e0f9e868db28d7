// The two lists in the page's header: processes, and the pools of the chosen process.

import { everything } from './statistics.js';
import { byId, element } from './elements.js';
import { named } from './units.js';

/** Replaces a list's options only if they changed, because the list may be open. */
function offer(list, options, chosen) {
  const before = JSON.stringify([...list.options].map(({ value, text }) => [value, text]));
  const after = JSON.stringify(options);
  if (before !== after) {
    list.replaceChildren(...options.map(([value, text]) => element('option', { value, text })));
  }
  list.value = String(chosen ?? '');
  list.disabled = options.length === 0;
}

function processText({ process, name, readable, ended }) {
  const state = ended ? ' (ended)' : readable ? '' : ' (not readable)';
  return `${named(name)} ${process}${state}`;
}

export function offerProcesses(processes, chosen) {
  const options = processes.map((one) => [String(one.process), processText(one)]);
  const isListed = processes.some(({ process }) => process === chosen);
  if (chosen !== null && !isListed) options.push([String(chosen), `${chosen} (ended)`]);
  offer(byId('process'), options, chosen);
}

export function offerPools(pools, chosen) {
  const all = [[everything, `all ${pools.length}`]];
  offer(byId('pool'), all.concat(pools.map(({ id, name }) => [String(id), named(name)])), chosen);
}

/** Returns the next or previous element of `all`, wrapping around at the ends. */
export function neighbour(all, present, step) {
  if (all.length === 0) return present;
  const at = all.indexOf(present);
  return all[(at + step + all.length) % all.length];
}

/** Returns the process to show first: the wanted one, or one that runs and can be read. */
export function firstChoice(processes, wanted) {
  if (processes.some(({ process }) => process === wanted)) return wanted;
  const best = processes.find(({ readable, ended }) => readable && !ended);
  return (best ?? processes.find(({ readable }) => readable) ?? processes[0])?.process ?? null;
}
