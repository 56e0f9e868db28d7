// Simulates the server with made-up processes; the test advances its time.

import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { entryOf, historyOf, snapshotOf } from './made_up.mjs';

const types = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml' };

/** The page's files by path, as in the built command. */
function pageFiles(folder, uplot) {
  const files = { '/': join(folder, 'index.html'), '/uplot.js': join(uplot, 'uPlot.iife.min.js'), '/uplot.css': join(uplot, 'uPlot.min.css') };
  for (const sub of ['', 'panels']) {
    for (const name of readdirSync(join(folder, sub))) {
      if (/\.(js|css|svg)$/.test(name)) files[`/${sub ? 'panels/' : ''}${name}`] = join(folder, sub, name);
    }
  }
  return files;
}

export class FakeServer {
  #files; #server; #streams = new Map(); #sockets = new Set();
  processes = new Map(); ended = new Set(); unreadable = []; token = null; past = 400; profileTimes = null;

  constructor(folder, uplot) { this.#files = pageFiles(folder, uplot); }

  async listen(port = 0) {
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise((done) => this.#server.listen(port, '127.0.0.1', done));
    this.port = this.#server.address().port;
    return `http://127.0.0.1:${this.port}/`;
  }

  /** Closes all connections and stops listening. */
  async close() {
    for (const socket of this.#sockets) socket.destroy();
    this.#streams.clear();
    await new Promise((done) => this.#server.close(done));
  }

  get watchers() { return this.#streams.size; }

  add(made) { this.processes.set(made.number, made); }

  list() {
    const own = [...this.processes.values()].map(({ number, name }) =>
      ({ process: number, name, readable: true, problem: '', ended: this.ended.has(number) }));
    return own.concat(this.unreadable);
  }

  /** Advances all processes by one second. */
  tick() {
    const time = Date.now() / 1000;
    for (const [response, number] of this.#streams) {
      const made = this.processes.get(number);
      if (this.ended.has(number)) continue;
      this.#send(response, 'snapshot', snapshotOf(made, time));
      this.#send(response, 'timeline', { entries: [entryOf(made, time)], lost: 0 });
    }
  }

  end(number) {
    this.ended.add(number);
    for (const [response, of] of this.#streams) {
      if (of === number) this.#send(response, 'ended', { time: Date.now() / 1000 });
    }
    this.sendList();
  }

  sendList() {
    for (const response of this.#streams.keys()) this.#send(response, 'processes', this.list());
  }

  #send(response, event, data) { response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`); }

  #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, 'http://x');
    response.setHeader('Content-Security-Policy', "default-src 'self'");
    if (pathname === '/api/session') return this.#session(request, response);
    if (pathname === '/metrics.js') return this.#metrics(response);
    if (this.#files[pathname]) return this.#file(this.#files[pathname], response);
    if (this.token && request.headers.cookie !== `session=${encodeURIComponent(this.token)}`) return response.writeHead(401).end();
    if (pathname === '/api/processes') return response.end(JSON.stringify(this.list()));
    if (/^\/(api\/profile|flame-graph)/.test(pathname)) return this.#profile(pathname, searchParams, response);
    const made = this.processes.get(Number(searchParams.get('process')));
    if (pathname !== '/api/stream' || !made) return response.writeHead(404).end();
    this.#stream(made, response);
  }

  /** Like the server without a token, unless `profileTimes` is set. The graph is its own address. */
  #profile(pathname, parameters, response) {
    if (!this.profileTimes) return response.writeHead(403).end(JSON.stringify({ error: 'only shown with --token-file' }));
    if (pathname === '/api/profile/times') return response.end(JSON.stringify({ times_unix_ms: this.profileTimes }));
    response.setHeader('Content-Type', types.html);
    response.end(`<!doctype html><p>${parameters}`);
  }

  #file(path, response) {
    response.setHeader('Content-Type', types[path.split('.').pop()]);
    response.end(readFileSync(path));
  }

  /** The parts of the table of metrics that the page reads. */
  #metrics(response) {
    const words = {
      in_use_bytes: 'allocated_bytes.all.current', requested_in_use_bytes: 'requested_bytes.all.current',
      peak_active_bytes: 'active_bytes.all.peak', capacity_bytes: 'reserved_bytes.all.current',
      split_bytes: 'inactive_split_bytes.all.current', deferred_bytes: 'active_pending_free',
      allocations: 'allocation.all.allocated', slabs: 'segment.all.current',
      synchronizations: 'num_sync_all_streams', pressures: 'num_alloc_retries', failures: 'num_ooms',
      free_bytes: '',
    };
    const device = Object.fromEntries(Object.entries(words).map(([name, pytorch]) =>
      [name, { unit: 'bytes', sentence: `About ${name}.`, pytorch }]));
    response.setHeader('Content-Type', types.js);
    response.end(`export const metrics = ${JSON.stringify({ device })};`);
  }

  #session(request, response) {
    let body = '';
    request.on('data', (part) => { body += part; });
    request.on('end', () => {
      const token = decodeURIComponent(body.replace(/^token=/, ''));
      if (token !== this.token) return response.writeHead(401).end();
      response.setHeader('Set-Cookie', `session=${encodeURIComponent(token)}; HttpOnly; SameSite=Strict; Path=/`);
      response.writeHead(204).end();
    });
  }

  #stream(made, response) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    const time = Date.now() / 1000;
    this.#send(response, 'history', historyOf(made, time, this.past));
    this.#send(response, 'snapshot', snapshotOf(made, time));
    this.#send(response, 'timeline', { entries: Array.from({ length: 8 }, (_, index) => entryOf(made, time - 80 + 10 * index)), lost: 12 });
    if (this.ended.has(made.number)) this.#send(response, 'ended', { time });
    this.#streams.set(response, made.number);
    response.on('close', () => this.#streams.delete(response));
  }
}
