// The report is complete without this script. It adds the selection of a moment, by pointer or
// keyboard, and the choice between light and dark.
'use strict';

const data = JSON.parse(document.getElementById('timeline-data').textContent);
const picker = document.getElementById('moment');
const svgNames = 'http://www.w3.org/2000/svg';

function threeDigits(value) {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

function formatSize(bytes) {
  if (bytes === 0) return '0';
  if (data.plainBytes) return String(bytes);
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 1023.5 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${threeDigits(value)} ${units[unit]}`;
}

function formatTime(ns) {
  if (ns === 0) return '0';
  if (ns < 1000) return `${ns} ns`;
  const units = ['ns', 'us', 'ms', 's'];
  let value = ns;
  let unit = 0;
  for (; value >= 999.5 && unit + 1 < units.length; ++unit) value /= 1000;
  return `${threeDigits(value)} ${units[unit]}`;
}

class Chart {
  constructor(element, series) {
    this.svg = element.querySelector('svg');
    this.series = series;
    this.outputs = [...element.querySelectorAll('.legend output')];
    this.cursor = document.createElementNS(svgNames, 'line');
    this.cursor.setAttribute('class', 'cursor');
    this.cursor.setAttribute('y1', '0');
    this.cursor.setAttribute('y2', String(data.height));
    this.svg.append(this.cursor);
    this.svg.addEventListener('pointermove', event => this.follow(event));
    this.svg.addEventListener('pointerdown', event => this.follow(event));
  }

  follow(event) {
    const box = this.svg.getBoundingClientRect();
    const part = (event.clientX - box.left) / box.width;
    picker.value = nearest(part * data.width);
    show();
  }

  show(index) {
    const x = String(data.x[index]);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    this.outputs.forEach((output, k) => {
      output.textContent = formatSize(this.series[k][index]);
    });
  }
}

function nearest(x) {
  let best = 0;
  data.x.forEach((other, index) => {
    if (Math.abs(other - x) < Math.abs(data.x[best] - x)) best = index;
  });
  return best;
}

const charts = data.charts.map(
    chart => new Chart(document.getElementById(chart.id), chart.series));

function show() {
  const index = Number(picker.value);
  for (const chart of charts) chart.show(index);
  const text = `${formatTime(data.times[index])}, ${formatSize(data.alive[index])}`;
  document.getElementById('moment-text').textContent = text;
  picker.setAttribute('aria-valuetext', text);
}

if (picker) {
  picker.addEventListener('input', show);
  show();
}

// Light or dark follows the system until the user chooses.
const themeButton = document.getElementById('theme');
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : systemIsDark.matches;
}

function nameTheme() {
  themeButton.textContent = isDark() ? 'light' : 'dark';
}

themeButton.hidden = false;
themeButton.addEventListener('click', () => {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  nameTheme();
});
systemIsDark.addEventListener('change', nameTheme);
nameTheme();
