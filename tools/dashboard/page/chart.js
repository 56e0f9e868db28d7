// A chart over time: stacked areas and lines, with a legend that shows the values at the cursor, or
// else those at one moment, usually the newest. uPlot is a classic script, so it is in `window`.

import { element, setText } from './elements.js';
import { clock, unknown } from './units.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const together = window.uPlot?.sync('time');

/** Stacks areas: each value becomes the sum up to its series. */
function stacked(series, data) {
  const below = new Array(data.t.length).fill(0);
  return series.map(({ key, area }) => data[key].map((value, index) => {
    if (!area || value === null) return value;
    below[index] += value;
    return below[index];
  }));
}

/** Returns the pairs of series in uPlot between which an area is filled; series 0 is the time. */
function bands(series) {
  const areas = series.map(({ area }, index) => (area ? index + 1 : 0)).filter(Boolean);
  return areas.slice(1).map((upper, index) => ({ series: [upper, areas[index]] }));
}

/** Stacked areas are separated by a thin line; a single area is light, with an edge. */
function line({ color, area, dash, width }, _, { length }) {
  const alone = length === 1;
  return {
    stroke: () => colour(area && !alone ? '--surface' : color),
    fill: area ? () => colour(color) + (alone ? '2e' : '') : undefined,
    width: width ?? (area && !alone ? 1 : 2), dash, points: { show: false }, spanGaps: false,
  };
}

const axis = {
  stroke: () => colour('--dim'), font: '12px system-ui, sans-serif',
  grid: { stroke: () => colour('--line'), width: 1 }, ticks: { show: false },
};

/** The time of day. Another time has its own `text(value)`, and `texts` and `steps` of the axis or none. */
const time_of_day = {
  text: clock, steps: [5, 10, 15, 30, 60, 120, 180, 300, 600],
  texts: (_, splits, __, ___, step) =>
    splits.map((time) => (step < 60 ? clock(time) : clock(time).slice(0, 5))),
};

/** Removes zeros after the decimal point from a label of an axis. */
const round = (text) => text.replace(/\.0+(?= )/, '');

/** The steps of an axis of bytes: powers of two. */
export const byte_steps = Array.from({ length: 60 }, (_, power) => 2 ** power);

export class Chart {
  #series; #values = []; #when; #plot; #data = null; #format; #top; #host; #time; #moved;
  #latest = 'now'; #resting = null; #placed = false;

  /** `top(data)`: the minimum of the upper end of the axis. `moved(index)`: the cursor has moved to a
      sample; it then stays there. */
  constructor(card, { series, format, steps, top, label, time = time_of_day, moved }) {
    this.#series = series;
    this.#format = format;
    this.#top = top;
    this.#time = time;
    this.#moved = moved;
    this.#when = element('span', { class: 'when figure', text: 'now' });
    card.querySelector('h2').append(this.#when);
    this.#host = element('div', {
      class: 'chart', tabindex: '0', role: 'group',
      'aria-label': `${label} over time: arrow keys move the cursor, the legend shows the values`,
    });
    card.append(this.#legend(), this.#host);
    this.#plot = this.#make(steps);
    this.#host.addEventListener('keydown', (event) => this.#key(event));
    for (const name of ['blur', 'mouseleave']) this.#host.addEventListener(name, () => this.#leave());
    new ResizeObserver(() => this.#plot.setSize(this.#size())).observe(this.#host);
  }

  #legend() {
    return element('ul', { class: 'legend' }, this.#series.map(({ name, color, area, dash }) => {
      const value = element('span', { class: 'figure', text: unknown });
      this.#values.push(value);
      const swatch = element('span', { class: area ? 'swatch' : 'swatch thin' });
      if (area) swatch.style.background = `var(${color})`;
      else swatch.style.borderTop = `2px ${dash ? 'dashed' : 'solid'} var(${color})`;
      return element('li', {}, [swatch, ' ', element('span', { class: 'name', text: name }), ' ', value]);
    }));
  }

  #size() { return { width: this.#host.clientWidth, height: this.#host.clientHeight }; }

  #make(steps) {
    return new window.uPlot({
      ...this.#size(), ms: 1e-3, legend: { show: false }, padding: [8, 30, 0, 0],
      cursor: { sync: { key: together.key, scales: ['x', null] }, drag: { x: false, y: false },
        points: { show: false } },
      scales: { x: { time: this.#time === time_of_day },
        y: { range: (_, __, max) => [0, Math.max(max ?? 0, this.#top?.(this.#data) ?? 0) * 1.05 || 1] } },
      axes: [{ ...axis, space: 64, size: 26, incrs: this.#time.steps,
        values: this.#time.texts ?? ((_, splits) => splits.map(this.#time.text)) },
        { ...axis, size: 68, incrs: steps,
          values: (_, splits) => splits.map((value) => round(this.#format(value))) }],
      series: [{}, ...this.#series.map(line)], bands: bands(this.#series),
      hooks: { setCursor: [() => this.#show()] },
    }, [[0], ...this.#series.map(() => [null])], this.#host);
  }

  /** Puts the cursor to a sample, where it stays. */
  rest(index) {
    this.#resting = index;
    this.#placed = true;
    this.#plot.setCursor({ left: this.#plot.valToPos(this.#data.t[index], 'x'), top: 10 });
    this.#placed = false;
    this.#show();
  }

  /** Shows `data.t` and its series from `since` on; `latest` names the time of the newest values. */
  update(data, since, latest) {
    this.#data = data;
    this.#latest = latest;
    this.#plot.batch(() => {
      this.#plot.setData([data.t, ...stacked(this.#series, data)], false);
      this.#plot.setScale('x', { min: since, max: Math.max(data.t.at(-1) ?? 0, since + 1) });
    });
    this.#show();
  }

  /** To be called after a change of colours. */
  redraw() { this.#plot.redraw(false, true); }

  #show() {
    if (!this.#data) return;
    const { t } = this.#data;
    const { left, idx } = this.#plot.cursor;
    const hovers = left >= 0 && idx !== null && idx < t.length;
    // Samples may be closer than pixels, so where the cursor was put, another may be nearest.
    const index = hovers && !this.#placed ? idx : this.#resting ?? t.length - 1;
    if (hovers && this.#moved && index !== this.#resting) return this.#moved(index);
    setText(this.#when, hovers || this.#moved ? this.#time.text(t[index]) : this.#latest);
    this.#series.forEach(({ key, format }, at) => {
      setText(this.#values[at], (format ?? this.#format)(this.#data[key][index]));
    });
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === 'Escape') this.#leave();
    if (!step || !this.#data?.t.length) return;
    event.preventDefault();
    const last = this.#data.t.length - 1;
    const { left, idx } = this.#plot.cursor;
    const from = left >= 0 && idx !== null ? idx : last;
    const index = Math.max(0, Math.min(last, from + step));
    this.#move(this.#data.t[index]);
  }

  /** Moves the cursor of all charts to a time; null removes it. */
  #move(time) {
    for (const plot of together.plots) {
      plot.setCursor(time === null ? { left: -10, top: -10 } : { left: plot.valToPos(time, 'x'), top: 10 });
    }
  }

  #leave() { this.#move(this.#moved ? this.#data.t[this.#resting] : null); }
}
