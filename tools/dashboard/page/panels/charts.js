// The three charts over time.

import { Chart, byte_steps } from '../chart.js';
import { byId } from '../elements.js';
import { bytes, percent, rate } from '../units.js';

const maximum = (values) => values.reduce((a, b) => Math.max(a, b ?? 0), 0);
const limitText = (value) => (value === null ? 'none' : bytes(value));

/** A limit far above the capacity would flatten the rest, so then only the legend shows it. */
function limitInSight({ capacity, limit }) {
  const highest = maximum(limit);
  return highest <= 3 * maximum(capacity) ? highest : 0;
}

const areas = (...list) => list.map(([key, name, color]) => ({ key, name, color, area: true }));

export function makeCharts() {
  const ladder = new Chart(byId('ladder'), {
    label: 'Memory', format: bytes, steps: byte_steps,
    top: (data) => (data ? limitInSight(data) : 0),
    series: [
      ...areas(['in_use', 'in use', '--in-use'], ['magazine', 'magazines', '--magazine'],
        ['depot', 'depots', '--depot'], ['span', 'spans', '--span'],
        ['extent', 'extents', '--extent']),
      { key: 'capacity', name: 'capacity', color: '--text', width: 1.5 },
      { key: 'limit', name: 'limit', color: '--limit', dash: [8, 5], format: limitText },
    ],
  });
  const sources = new Chart(byId('sources'), {
    label: 'Allocations per second', format: rate,
    series: areas(['from_magazines', 'magazines', '--magazine'], ['from_depots', 'depots', '--depot'],
      ['from_spans', 'spans', '--span'], ['from_extents', 'extents', '--extent'],
      ['from_system', 'the system', '--system']),
  });
  const rounding = new Chart(byId('rounding'), {
    label: 'Rounding', format: percent, top: () => 0.2,
    series: areas(['rounding', 'not requested', '--waste']),
  });
  return [ladder, sources, rounding];
}
