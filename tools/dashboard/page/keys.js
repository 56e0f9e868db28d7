// Shortcuts: one key each, and none while something is typed or chosen from a list.

const typing = (where) => where.closest?.('input, textarea, select');

/** `actions`: a function for each key. */
export function listen(actions) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });
}
