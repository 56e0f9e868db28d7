// A table whose row elements stay the same while their values change.

import { element, setText } from './elements.js';

export class Rows {
  #columns; #body; #rows = new Map(); #sorted = null; #down = true; #items = []; #none;

  /**
   * `columns`: `{name, text, class, value, draw, title, about}`. A column with `value(item)` can be
   * sorted by; `about` is the tooltip of its header.
   * `press(item)`: the action of a row's first cell, which is then a button.
   */
  constructor(card, { columns, key, press, none, label }) {
    this.#columns = columns;
    this.key = key;
    this.press = press;
    this.#body = element('tbody');
    this.#none = element('p', { class: 'none', text: none });
    const head = element('tr', {}, columns.map((column) => this.#header(column)));
    const table = element('table', { 'aria-label': label }, [element('thead', {}, [head]), this.#body]);
    // A scrolling element must be reachable by keyboard.
    card.append(element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': label },
      [table, this.#none]));
  }

  #header(column) {
    const cell = element('th', { class: column.class ?? '', scope: 'col' });
    if (column.about) cell.title = column.about;
    if (!column.value) {
      cell.textContent = column.name;
      return cell;
    }
    const button = element('button', { type: 'button', text: column.name });
    button.addEventListener('click', () => this.#sort(column, cell));
    cell.append(button);
    return cell;
  }

  #sort(column, cell) {
    this.#down = this.#sorted === column ? !this.#down : true;
    this.#sorted = column;
    for (const other of cell.parentElement.children) other.removeAttribute('aria-sort');
    cell.setAttribute('aria-sort', this.#down ? 'descending' : 'ascending');
    this.update(this.#items);
  }

  #inOrder(items) {
    if (!this.#sorted) return items;
    const { value } = this.#sorted;
    const sign = this.#down ? -1 : 1;
    return [...items].sort((a, b) => sign * (value(a) - value(b)));
  }

  update(items, isChosen = () => false) {
    this.#items = items;
    this.#none.hidden = items.length > 0;
    const seen = new Set();
    this.#inOrder(items).forEach((item, index) => {
      const key = this.key(item);
      seen.add(key);
      const row = this.#rows.get(key) ?? this.#make(key);
      if (this.#body.children[index] !== row.element) {
        this.#body.insertBefore(row.element, this.#body.children[index] ?? null);
      }
      this.#fill(row, item, isChosen(item));
    });
    for (const [key, row] of this.#rows) {
      if (seen.has(key)) continue;
      row.element.remove();
      this.#rows.delete(key);
    }
  }

  #make(key) {
    const row = { item: null };
    row.cells = this.#columns.map((column, index) => {
      const cell = element('td', { class: column.class ?? '' });
      if (index > 0 || !this.press) return { cell, text: cell };
      const button = element('button', { type: 'button', class: 'pick' });
      button.addEventListener('click', () => this.press(row.item));
      cell.append(button);
      return { cell, text: button, button };
    });
    row.element = element('tr', {}, row.cells.map(({ cell }) => cell));
    this.#rows.set(key, row);
    return row;
  }

  #fill(row, item, chosen) {
    row.item = item;
    row.element.classList.toggle('chosen', chosen);
    this.#columns.forEach((column, index) => {
      const { cell, text, button } = row.cells[index];
      if (column.draw) column.draw(cell, item);
      else setText(text, column.text(item));
      if (column.title) cell.title = column.title(item);
      button?.setAttribute('aria-pressed', String(chosen));
    });
  }
}
