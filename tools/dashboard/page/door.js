// The form that prompts for the token.

import { byId, setText } from './elements.js';

export class Door {
  #connection;

  constructor(connection) {
    this.#connection = connection;
    byId('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const field = byId('token');
      const token = field.value.trim();
      field.value = '';
      this.enter(token);
    });
  }

  open() {
    if (!byId('door').hidden) return;
    byId('door').hidden = false;
    byId('token').focus();
  }

  close() {
    byId('door').hidden = true;
    setText(byId('token-problem'), '');
  }

  async enter(token) {
    try {
      const taken = await this.#connection.enter(token);
      if (!taken) {
        this.open();
        setText(byId('token-problem'), 'Wrong token.');
      }
    } catch {
      setText(byId('token-problem'), 'The server does not answer. Try again.');
    }
  }
}
