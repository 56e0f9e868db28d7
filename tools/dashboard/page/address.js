// The part of the page's address after "#": a token, once, and the process to show.

/** Returns the token in the address and removes it from there; null if there is none. */
export function takeToken() {
  const parts = location.hash.slice(1).split('&');
  const token = parts.find((part) => part.startsWith('token='));
  if (!token) return null;
  const rest = parts.filter((part) => part !== token).join('&');
  history.replaceState(null, '', location.pathname + location.search + (rest ? `#${rest}` : ''));
  try {
    return decodeURIComponent(token.slice('token='.length));
  } catch {
    return token.slice('token='.length);
  }
}

/** Returns the process id in the address; null if there is none. */
export function namedProcess() {
  const found = /[#&]process=(\d{1,15})(&|$)/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

/** Puts the process into the address, so that a reloaded page shows it again. */
export function nameProcess(process) {
  history.replaceState(null, '', `${location.pathname}${location.search}#process=${process}`);
}
