// Shows the report of `tensorpool inspect`: facts, charts of the trace's memory, and tables.

import { Chart, byte_steps } from '../chart.js';
import { byId, element, setText } from '../elements.js';
import { Theme } from '../theme.js';
import { bytes, duration, plain } from '../units.js';

const data = JSON.parse(byId('data').textContent);
const main = byId('report');
const sized = data.plain_bytes ? String : bytes;
const colours = ['--in-use', '--magazine', '--span', '--system', '--extent', '--depot', '--lilac', '--grey'];

const card = (kind, title, content) => main.appendChild(
  element('section', { class: `card ${kind}` }, [...(title ? [element('h2', { text: title })] : []), ...content]));
const note = (text) => (text ? [element('p', { class: 'note', text: plain(text) })] : []);
const list = (tag, lines) => element(tag, {},
  lines.map((line) => element('li', { class: 'name', text: plain(line) })));

function showFacts() {
  main.append(element('div', { class: 'facts' }, data.facts.map(([name, value, more]) =>
    element('div', { class: 'tile' }, [element('span', { text: name }),
      element('strong', { class: 'figure', text: value }),
      element('small', { class: 'name', text: plain(more) })]))));
}

/** One moment is shown by all charts: the peak, until a pointer or a key chooses another. */
function showCharts({ t, alive, charts }) {
  const picker = element('input', { id: 'moment', type: 'range', min: 0, max: t.length - 1 });
  const text = element('output', { for: 'moment' });
  card('full moment', '', [element('label', { for: 'moment', text: 'Moment' }), picker, text]);
  let chosen = null;
  const choose = (index) => {
    if (index === chosen) return;
    chosen = index;
    picker.value = index;
    setText(text, `${duration(t[index])}, ${sized(alive[index])}`);
    picker.setAttribute('aria-valuetext', text.textContent);
    for (const chart of drawn) chart.rest(index);
  };
  const drawn = charts.map(({ title, note: about, stacked, series }) => {
    const chart = new Chart(card('full', title, note(about)), {
      label: title, format: sized, steps: byte_steps, time: { text: duration }, moved: choose,
      series: series.map(({ name }, key) =>
        ({ key, name: plain(name), color: colours[key % colours.length], area: stacked || key === 0 })),
    });
    chart.update({ t, ...series.map(({ values }) => values) }, t[0], '');
    return chart;
  });
  picker.addEventListener('input', () => choose(Number(picker.value)));
  choose(alive.indexOf(Math.max(...alive)));
  return drawn;
}

function cell(column, text, details) {
  const kind = { class: column.number ? 'number' : 'name' };
  if (!details) return element('td', { ...kind, text: plain(text) });
  return element('td', kind, [element('details', {},
    [element('summary', { text: plain(text) }), list('ol', details)])]);
}

function showTable({ title, note: about, columns, rows, details }) {
  const head = columns.map(({ title: text, number }) =>
    element('th', { scope: 'col', class: number ? 'number' : 'name', text }));
  const body = rows.map((row, at) => element('tr', {}, row.map((text, column) =>
    cell(columns[column], text, column === 0 && details[at]?.length > 1 && details[at]))));
  const table = element('table', {},
    [element('thead', {}, [element('tr', {}, head)]), element('tbody', {}, body)]);
  const is_wide = columns.length > 5 || details.length > 0;
  card(is_wide ? 'full' : '', title, [...note(about), element('div', { class: 'scroll' }, [table])]);
}

document.title = `${plain(data.title)} - tensorpool inspect`;
setText(byId('title'), plain(data.title));
let drawn = [];
new Theme(byId('theme'), () => { for (const chart of drawn) chart.redraw(); });
showFacts();
if (data.notes.length > 0) card('full notes', 'Notes', [list('ul', data.notes)]);
if (window.uPlot) drawn = showCharts(data.timeline);
else card('full notes', 'Notes', note('Built without npm, which provides the charts.'));
data.sections.forEach(showTable);
