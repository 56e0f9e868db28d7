// All panels, filled from the data of one moment.

import { Buckets } from './panels/buckets.js';
import { makeCharts } from './panels/charts.js';
import { makeAbout, makeLarge } from './panels/facts.js';
import { Headline } from './panels/headline.js';
import { Kinds } from './panels/kinds.js';
import { makePools, makeThreads } from './panels/tables.js';
import { byId } from './elements.js';
import { chosenStatistics, chosenThreads, everything } from './statistics.js';
import { kept_seconds } from './history.js';

const min_seconds = 60;

/** Returns the start of the charts: not before there is data. */
function beginning(t, seconds) {
  if (t.length === 0) return 0;
  const until = t.at(-1);
  return Math.min(until - min_seconds, Math.max(t[0], until - seconds));
}

export class View {
  #headline = new Headline(byId('headline'));
  #charts = makeCharts();
  #buckets = new Buckets();
  #large = makeLarge();
  #about = makeAbout();
  #kinds = new Kinds(byId('kinds'));
  #threads = makeThreads();
  #pools;
  seconds = kept_seconds;

  constructor(choosePool) { this.#pools = makePools(choosePool); }

  recolour() { for (const chart of this.#charts) chart.redraw(); }

  /** Shows `{time, snapshot, rates, tables, history, pool, latest}`; the snapshot may be null. */
  show({ time, snapshot, rates, tables, history, pool, latest }) {
    const statistics = chosenStatistics(snapshot, rates, pool);
    const series = history.series(pool);
    const since = beginning(series.t, this.seconds);
    this.#headline.update({ ...statistics, faults: rates?.minor_faults,
      resident: snapshot?.resident_bytes }, series, since);
    for (const chart of this.#charts) chart.update(series, since, latest);
    this.#buckets.update(statistics.pool);
    this.#large.update(statistics.pool?.large);
    this.#about.update(snapshot);
    this.#kinds.update(tables ?? [], snapshot, time);
    this.#showTables(snapshot, pool);
  }

  #showTables(snapshot, choice) {
    const pools = snapshot?.pools ?? [];
    const sum = chosenStatistics(snapshot, null, everything).pool;
    const all = sum ? [{ ...sum, id: everything, name: 'all pools' }] : [];
    this.#pools.update([...all, ...pools], ({ id }) => id === choice);
    this.#threads.update(chosenThreads(snapshot, choice));
  }
}
