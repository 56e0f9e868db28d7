// Tests the page's modules that need no browser.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeProcess, snapshotOf } from './made_up.mjs';
import { leastDistance } from './colours.mjs';

const folder = process.env.PAGE_FOLDER;
const load = (name) => import(pathToFileURL(join(folder, name)));
const { bytes, count, percent, plain, rate, size } = await load('units.js');
const { chosenStatistics, chosenThreads, everything, waste } = await load('statistics.js');
const { History } = await load('history.js');

test('bytes have IEC units and three digits', () => {
  assert.deepEqual([0, 1023, 1024, 10_240, 1.5 * 2 ** 20, 2 ** 40, -4096].map(bytes),
    ['0 B', '1023 B', '1.00 KiB', '10.0 KiB', '1.50 MiB', '1.00 TiB', '−4.00 KiB']);
  assert.equal(bytes(2 ** 20 - 1), '1.00 MiB');
  assert.equal(bytes(null), '–');
  assert.equal(bytes(NaN), '–');
  assert.equal(size(65_536), '64 KiB');
});

test('counts, rates and percentages show no false precision', () => {
  assert.deepEqual([0, 99_999, 100_000, 1.5e9].map(count), ['0', '99,999', '100 k', '1.50 G']);
  assert.deepEqual([0, 0.04, 3.21, 12.6].map(rate), ['0', '0.0', '3.2', '13']);
  assert.deepEqual([0, 0.5, 0.99999, 1].map(percent), ['0.0 %', '50.0 %', '99.9 %', '100 %']);
  assert.equal(percent(0 / 0), '–');
});

test('names lose characters that could mislead', () => {
  assert.equal(plain('a\u202eb\nc\u0000'), 'a\ufffdb\ufffdc\ufffd');
  assert.equal(plain('größe <b>'), 'größe <b>');
});

test('pools are summed, with weighted ratios', () => {
  const { snapshot, rates } = snapshotOf(makeProcess(1, 'x', ['a', 'b']), 100);
  const [a, b] = snapshot.pools;
  const all = chosenStatistics(snapshot, rates, everything);
  assert.equal(all.pool.in_use_bytes, a.in_use_bytes + b.in_use_bytes);
  assert.equal(all.pool.buckets[3].in_use_bytes, a.buckets[3].in_use_bytes + b.buckets[3].in_use_bytes);
  assert.equal(all.pool.buckets[3].block_bytes, 512);
  assert.equal(all.pool.limit_bytes, 0, 'one pool has no limit');
  const [low, high] = rates.pools.map((one) => one.rounding_ratio).sort((x, y) => x - y);
  assert.ok(all.rates.rounding_ratio > low && all.rates.rounding_ratio < high);
  assert.equal(chosenStatistics(snapshot, rates, a.id).pool.in_use_bytes, a.in_use_bytes);
  assert.equal(chosenStatistics({ pools: [] }, null, everything).pool, null);
});

test('a thread that uses several pools appears once', () => {
  const { snapshot } = snapshotOf(makeProcess(1, 'x', ['a', 'b']), 100);
  const threads = chosenThreads(snapshot, everything);
  assert.equal(threads.length, snapshot.threads.length / 2);
  assert.equal(threads[0].parked_bytes, 2 * snapshot.threads[0].parked_bytes);
});

test('waste is the part of the bytes in use that was not requested', () => {
  assert.equal(waste({ in_use_bytes: 100, requested_bytes: 750, allocated_bytes: 1000 }), 25);
  assert.equal(waste({ in_use_bytes: 100, requested_bytes: 0, allocated_bytes: 0 }), 0);
});

const past = (id, t, in_use) => ({ id, name: '', t, series: { in_use } });

test('history sums pools by time, each during its lifetime', () => {
  const history = new History();
  history.load([past(1, [10, 11, 12, 13], [1, 2, 3, 4]), past(2, [11, 12], [10, 20])]);
  const all = history.series(everything);
  assert.deepEqual(all.t, [10, 11, 12, 13]);
  assert.deepEqual(all.in_use, [1, 12, 23, 4]);
  assert.deepEqual(all.limit, [null, null, null, null]);
  assert.deepEqual(history.series(2).in_use, [10, 20]);
  assert.deepEqual(history.series(77).t, []);
});

test('history continues with snapshots and drops samples after ten minutes', () => {
  const history = new History();
  const made = makeProcess(1, 'x', ['a']);
  history.load([past(1, [10, 100], [1, 2])]);
  const { snapshot, rates } = snapshotOf(made, 101);
  history.add(101, snapshot, rates);
  history.add(101, snapshot, rates);
  assert.deepEqual(history.series(1).t, [10, 100, 101]);
  history.add(650, snapshot, rates);
  assert.deepEqual(history.series(1).t, [100, 101, 650]);
  assert.equal(history.series(1).allocated.at(-1), rates.pools[0].allocated_bytes);
});

test('colours of parts are distinguishable with any kind of colour blindness', () => {
  const css = readFileSync(join(folder, 'base.css'), 'utf8');
  const themes = css.match(/:root[^{]*\{[^}]*\}/g);
  assert.equal(themes.length, 2);
  for (const theme of themes) {
    const colour = (name) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(theme)[1];
    const parts = ['in-use', 'magazine', 'depot', 'span', 'extent', 'system'].map(colour);
    assert.ok(leastDistance(parts) > 12, `${leastDistance(parts)} in ${theme}`);
    assert.ok(leastDistance(['in-use', 'waste', 'free'].map(colour)) > 12);
  }
});

test('the check of colours detects similar ones', () => {
  assert.ok(leastDistance(['#009e73', '#cc79a7']) < 8, 'green and pink, without green perception');
});
