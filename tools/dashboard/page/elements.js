// Creates elements with text, never with markup, because names come from arbitrary processes.

/** Creates an element; `properties` may contain class, text, and attributes. */
export function element(tag, properties = {}, children = []) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'text') made.textContent = value;
    else if (name === 'class') made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Sets a text only if it differs, to avoid redrawing. */
export function setText(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

/** Draws a fraction as a bar in a cell of a table. */
export function drawPart(cell, part) {
  const bar = cell.firstElementChild ??
    cell.appendChild(element('div', { class: 'bar-line' }, [element('i', { class: 'in-use' })]));
  fill(bar.firstElementChild, part);
  bar.classList.toggle('over', part > 1);
}

/** Fills a bar up to a fraction from 0 to 1. */
export function fill(bar, part) {
  const percent = Number.isFinite(part) ? Math.max(0, Math.min(1, part)) * 100 : 0;
  bar.style.width = `${percent.toFixed(2)}%`;
}
