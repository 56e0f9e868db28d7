// Keyboard shortcuts of one key each, inactive while an input or a list has the focus.

const typing = (where) => where.closest?.('input, textarea, select');

/** `actions` maps keys to functions. */
export function listen(actions) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });
}
