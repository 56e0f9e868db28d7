// Numbers as text: IEC units, and a width that hardly changes.

export const unknown = '–';
const known = (value) => typeof value === 'number' && Number.isFinite(value);

/** Three or four digits of a number from 0 to 1023. */
function digits(value) {
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

function scaled(value, step, units) {
  let power = 0;
  let rest = Math.abs(value);
  while (rest >= step - 0.5 && power < units.length - 1) {
    rest /= step;
    ++power;
  }
  const text = power === 0 && Number.isInteger(rest) ? String(rest) : digits(rest);
  return (value < 0 ? '−' : '') + text + units[power];
}

export function bytes(value) {
  return known(value)
    ? scaled(value, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB', ' EiB'])
    : unknown;
}

/** A size that is a power of two, such as a block's. */
export function size(value) {
  return bytes(value).replace(/\.0+ /, ' ');
}

/** Whole numbers as they are up to 99,999, then with k, M, G. */
export function count(value) {
  if (!known(value)) return unknown;
  if (Math.abs(value) < 99_999.5) return Math.round(value).toLocaleString('en-US');
  return scaled(value, 1000, ['', ' k', ' M', ' G', ' T', ' P']);
}

/** Events a second. */
export function rate(value) {
  if (!known(value)) return unknown;
  return value > 0 && value < 9.95 ? value.toFixed(1) : count(value);
}

/** A part of 1 in per cent; 100 % is said of the whole only. */
export function percent(part) {
  if (!known(part)) return unknown;
  const value = part >= 1 ? part * 100 : Math.min(part * 100, 99.9);
  return `${value.toFixed(value >= 100 ? 0 : 1)} %`;
}

const two = (value) => String(value).padStart(2, '0');

/** Seconds since 1970 as this machine's time of the day. */
export function clock(seconds, withMilliseconds = false) {
  if (!known(seconds)) return unknown;
  const time = new Date(seconds * 1000);
  const text = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':');
  return withMilliseconds ? `${text}.${String(time.getMilliseconds()).padStart(3, '0')}` : text;
}

// Control characters, and those that turn the direction of the text around them.
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name that a process chose, without what could pass for something else on the page. */
export function plain(name) {
  return String(name ?? '').replace(unsafe, '\ufffd');
}

/** The same, and a word where there is none. */
export function named(name, otherwise = 'no name') {
  return plain(name) || otherwise;
}
