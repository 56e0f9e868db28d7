// What the page's address holds after "#": a token, once, and what is shown.

/** The token in the address, which is taken out of it at once; null without one. */
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

/** The number of the process that the address names; null without one. */
export function namedProcess() {
  const found = /[#&]process=(\d{1,15})(&|$)/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

/** So that a page loaded again shows the same process. */
export function nameProcess(process) {
  history.replaceState(null, '', `${location.pathname}${location.search}#process=${process}`);
}
