// The page: the chosen process and pool, their data, and the state of the connection.

import { nameProcess, namedProcess, takeToken } from './address.js';
import { firstChoice, neighbour, offerPools, offerProcesses } from './choices.js';
import { Connection } from './connection.js';
import { Door } from './door.js';
import { byId, setText } from './elements.js';
import { everything } from './statistics.js';
import { History } from './history.js';
import { listen } from './keys.js';
import { CallStacks } from './panels/call_stacks.js';
import { Events } from './panels/events.js';
import { Theme } from './theme.js';
import { clock, named, plain } from './units.js';
import { View } from './view.js';

let processes = [];
let process = null;
let pool = everything;
let known = { snapshot: null, rates: null, history: new History() };
let held = false;

const events = new Events();
const stacks = new CallStacks();
const view = new View((id) => choosePool(id));
const theme = new Theme(byId('theme'), () => view.recolour());

const entryOf = (number) => processes.find((one) => one.process === number);
const nameOf = (number) => `${named(known.snapshot?.process_name ?? entryOf(number)?.name)} ${number}`;

/** `state` is one of connecting, live, held, ended, lost, empty, closed and unreadable. */
function setState(state, text) {
  document.body.dataset.state = state;
  byId('empty').hidden = state !== 'empty';
  byId('figures').hidden = state === 'empty' || state === 'closed';
  if (state !== 'closed') door.close();
  setText(byId('state'), text);
}

function show(force = false) {
  if ((held || document.hidden) && !force) return;
  const latest = document.body.dataset.state === 'ended' ? 'at the end' : 'now';
  view.show({ ...known, pool, latest });
  offerPools(known.snapshot?.pools ?? [], pool);
  setText(byId('updated'), known.snapshot ? `statistics of ${clock(known.time)}` : '');
  document.title = known.snapshot ? `${nameOf(process)} · tensorpool` : 'tensorpool';
}

function showLive() {
  setState(held ? 'held' : 'live', held ? 'Held: press h to continue' : `Live: ${nameOf(process)}`);
}

function choosePool(id) {
  pool = id;
  show(true);
}

function chooseProcess(number) {
  process = number;
  pool = everything;
  known = { snapshot: null, rates: null, history: new History() };
  events.clear();
  offerProcesses(processes, process);
  setState('connecting', `Loading the statistics of ${nameOf(number)}`);
  show(true);
  connection.follow(number);
  stacks.follow(number);
}

/** Only a choice of the user goes into the address. The page's own choice must not replace an address
    that is being entered. */
function pickProcess(number) {
  nameProcess(number);
  chooseProcess(number);
}

function takeProcesses(list) {
  processes = list;
  const choice = process ?? firstChoice(list, namedProcess());
  offerProcesses(list, choice);
  if (choice === null) setState('empty', 'No process with a pool: waiting for one');
  else if (choice !== process) chooseProcess(choice);
  else showListState();
}

/** Shows what the list says about the chosen process, for states that have no stream. */
function showListState() {
  const one = entryOf(process);
  if (one && !one.readable && !one.ended) {
    setState('unreadable', `${nameOf(process)} cannot be read: ${plain(one.problem)}`);
  }
}

const connection = new Connection({
  processes: takeProcesses,
  history: ({ pools }) => {
    known.history.load(pools);
    events.clear();
    show();
  },
  snapshot: ({ time, snapshot, rates, tables }) => {
    known = { ...known, time, snapshot, rates, tables };
    if (pool !== everything && !snapshot.pools.some(({ id }) => id === pool)) pool = everything;
    known.history.add(time, snapshot, rates);
    showLive();
    show();
  },
  timeline: (part) => events.add(part),
  ended: (time) => {
    const when = time ?? known.time;
    setState('ended', when ? `${nameOf(process)} ended at ${clock(when)}: these are its last statistics`
      : `Process ${process} has ended`);
    show(true);
  },
  lost: () => setState('lost', 'Connection lost, reconnecting'),
  token: () => {
    setState('closed', 'A token is required');
    door.open();
  },
});
const door = new Door(connection);

function step(all, present, by, choose) {
  const next = neighbour(all, present, by);
  if (next !== present && next !== null) choose(next);
}
const stepPool = (by) => step(
  [everything, ...(known.snapshot?.pools ?? []).map(({ id }) => id)], pool, by, choosePool);
const stepProcess = () => step(processes.map((one) => one.process), process, 1, pickProcess);

function turnWindow() {
  view.seconds = view.seconds === 600 ? 120 : 600;
  byId('window').textContent = `${view.seconds / 60} min`;
  show(true);
}

function turnHold() {
  held = !held;
  byId('hold').setAttribute('aria-pressed', String(held));
  if (['live', 'held'].includes(document.body.dataset.state)) showLive();
  show();
}

byId('process').addEventListener('change', ({ target }) => pickProcess(Number(target.value)));
byId('pool').addEventListener('change', ({ target }) =>
  choosePool(target.value === everything ? everything : Number(target.value)));
byId('window').addEventListener('click', turnWindow);
byId('hold').addEventListener('click', turnHold);
document.addEventListener('visibilitychange', () => {
  show();
  connection.look();
});
window.addEventListener('hashchange', () => {
  enterByAddress();
  showByAddress();
});
listen({
  p: stepProcess, '[': () => stepPool(-1), ']': () => stepPool(1), 0: () => choosePool(everything),
  w: turnWindow, h: turnHold, t: () => theme.turn(),
});

async function enterByAddress() {
  const token = takeToken();
  if (token !== null) await door.enter(token);
}

function showByAddress() {
  const number = namedProcess();
  if (number !== process && entryOf(number)) chooseProcess(number);
}

await enterByAddress();
connection.start();
