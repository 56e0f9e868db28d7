// The list of the server's processes, and the stream of one of them. Reconnects automatically.

const tick_ms = 1000;
const silence_ms = 6000;  // a stream sends a snapshot every second
const unseen_ticks = 30;

async function answer(path, options = {}) {
  const response = await fetch(path, { cache: 'no-store', credentials: 'same-origin', ...options });
  if (response.status === 401) throw Object.assign(new Error('a token is required'), { needsToken: true });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

export class Connection {
  #on; #process = null; #list = []; #stream = null; #heard = 0;
  #busy = false; #unseen = 0; #failed = false; #finished = false; #shut = false;

  /** `on` has a function for each of: processes, history, snapshot, timeline, ended, lost, token. */
  constructor(on) { this.#on = on; }

  start() {
    setInterval(() => this.#tick(), tick_ms);
    this.#tick();
  }

  /** Chooses the process whose stream is read; null for none. */
  follow(process) {
    this.#close();
    this.#process = process;
    this.#failed = this.#finished = false;
    this.#look();
  }

  /** Returns whether the server accepted the token; throws if the server does not answer. */
  async enter(token) {
    try {
      await answer('/api/session', {
        method: 'POST', body: `token=${encodeURIComponent(token)}`,
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      });
    } catch (error) {
      if (error.needsToken) return false;
      throw error;
    }
    this.#shut = false;
    await this.#load();
    return true;
  }

  /** Updates now instead of at the next tick, for example when the page becomes visible. */
  look() { this.#tick(); }

  #tick() {
    if (this.#shut || this.#isHidden()) return;
    if (this.#stream && Date.now() - this.#heard > silence_ms) this.#fail();
    if (!this.#stream) this.#load();
  }

  /** A page hidden for long closes its connection, because browsers and servers have few. */
  #isHidden() {
    this.#unseen = document.hidden ? this.#unseen + 1 : 0;
    if (this.#unseen === unseen_ticks) this.#close();
    return document.hidden;
  }

  /** Loads the list, which also shows whether the server is reachable and admits this page. */
  async #load() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      this.#take(await (await answer('/api/processes')).json());
      this.#look();
    } catch (error) {
      if (error.needsToken) this.#shutOut();
      else this.#on.lost();
    } finally {
      this.#busy = false;
    }
  }

  #take(processes) {
    this.#list = processes;
    this.#on.processes(processes);
  }

  /** Opens the stream if there is a process to show. */
  #look() {
    if (this.#process === null || this.#finished || this.#stream) return;
    const one = this.#list.find(({ process }) => process === this.#process);
    // A process that has ended may still have a stream with its last statistics.
    if (!one || (one.ended && this.#failed)) this.#end(null);
    else if (one.readable || one.ended) this.#open();
  }

  #shutOut() {
    this.#shut = true;
    this.#close();
    this.#on.token();
  }

  #open() {
    const stream = new EventSource(`/api/stream?process=${this.#process}`);
    const take = (name, use) => stream.addEventListener(name, ({ data }) => {
      if (stream !== this.#stream) return;
      this.#heard = Date.now();
      use(JSON.parse(data));
    });
    this.#stream = stream;
    this.#heard = Date.now();
    for (const name of ['history', 'snapshot', 'timeline']) take(name, this.#on[name]);
    take('processes', (processes) => this.#take(processes));
    take('ended', ({ time }) => this.#end(time));
    stream.onerror = () => { if (stream === this.#stream) this.#fail(); };
  }

  #fail() {
    this.#close();
    this.#failed = true;
    // The list at the next tick shows whether the server has gone, or only this process.
    this.#on.lost();
  }

  #end(time) {
    this.#close();
    this.#finished = true;
    this.#on.ended(time);
  }

  #close() {
    this.#stream?.close();
    this.#stream = null;
  }
}
