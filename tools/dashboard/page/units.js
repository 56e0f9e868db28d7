// Formats numbers: IEC units, and a nearly constant width.

export const unknown = '–';
const known = (value) => typeof value === 'number' && Number.isFinite(value);

/** Formats a number from 0 to 1023 with three or four digits. */
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

/** Formats a size that is a power of two, such as that of a block. */
export function size(value) {
  return bytes(value).replace(/\.0+ /, ' ');
}

/** Formats whole numbers in full up to 99,999, then with k, M, G. */
export function count(value) {
  if (!known(value)) return unknown;
  if (Math.abs(value) < 99_999.5) return Math.round(value).toLocaleString('en-US');
  return scaled(value, 1000, ['', ' k', ' M', ' G', ' T', ' P']);
}

/** Formats events per second. */
export function rate(value) {
  if (!known(value)) return unknown;
  return value > 0 && value < 9.95 ? value.toFixed(1) : count(value);
}

/** Formats a fraction as a percentage; only the whole is shown as 100 %. */
export function percent(part) {
  if (!known(part)) return unknown;
  const value = part >= 1 ? part * 100 : Math.min(part * 100, 99.9);
  return `${value.toFixed(value >= 100 ? 0 : 1)} %`;
}

/** Formats nanoseconds. */
export function duration(ns) {
  return ns === 0 ? '0' : scaled(ns, 1000, [' ns', ' us', ' ms', ' s']);
}

const two = (value) => String(value).padStart(2, '0');

/** Formats seconds since 1970 as this machine's time of day. */
export function clock(seconds, withMilliseconds = false) {
  if (!known(seconds)) return unknown;
  const time = new Date(seconds * 1000);
  const text = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':');
  return withMilliseconds ? `${text}.${String(time.getMilliseconds()).padStart(3, '0')}` : text;
}

// Control characters, and characters that change the direction of the surrounding text.
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns a name chosen by a process, without characters that could imitate other text. */
export function plain(name) {
  return String(name ?? '').replace(unsafe, '\ufffd');
}

/** Returns the name, or a placeholder if it is empty. */
export function named(name, otherwise = 'no name') {
  return plain(name) || otherwise;
}
