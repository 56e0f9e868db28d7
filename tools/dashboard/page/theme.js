// Light or dark: the system's setting, until the user chooses.

const kept = 'tensorpool-theme';
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

function stored() {
  try {
    return localStorage.getItem(kept);
  } catch {
    return null;  // browsers may forbid storage
  }
}

function store(value) {
  try {
    localStorage.setItem(kept, value);
  } catch {
    // The choice then lasts as long as the page.
  }
}

export class Theme {
  #chosen = stored(); #changed; #button;

  /** `button` turns the colours, unless it is null; `changed()` is called after a change. */
  constructor(button, changed) {
    this.#button = button;
    this.#changed = changed;
    button?.addEventListener('click', () => this.turn());
    systemIsDark.addEventListener('change', () => this.#apply());
    this.#apply();
  }

  get #dark() { return this.#chosen ? this.#chosen === 'dark' : systemIsDark.matches; }

  turn() {
    this.#chosen = this.#dark ? 'light' : 'dark';
    store(this.#chosen);
    this.#apply();
  }

  #apply() {
    document.documentElement.dataset.theme = this.#dark ? 'dark' : 'light';
    if (this.#button) this.#button.textContent = this.#dark ? 'light' : 'dark';
    this.#changed();
  }
}
