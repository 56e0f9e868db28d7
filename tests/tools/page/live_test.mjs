// Tests the page as served by `tensorpool serve`, with live processes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, afterEach } from 'node:test';
import { changed, inState, patience, picture, required, startBrowser, test, textOf, tile, withPage } from './browser.mjs';

const browser = await startBrowser();
const started = [];
const folder = mkdtempSync(join(tmpdir(), 'page-'));

/** Starts a program and returns it with its first line of output. */
async function start(program, ...words) {
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  started.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value, done } = await lines.next();
  if (done) throw new Error(`${program} ended without output`);
  return { child, line: value };
}

const waves = (...pools) => start(required('PAGE_WAVES'), ...pools);

async function serve(...words) {
  const { child, line } = await start(
    required('PAGE_COMMAND'), 'serve', '--listen', '127.0.0.1:0', '--json', ...words);
  return { child, url: JSON.parse(line).url };
}

function gone(child) {
  return child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve() : new Promise((done) => child.once('exit', done));
}

async function kill(child) {
  child.kill('SIGKILL');
  await gone(child);
}

afterEach(() => Promise.all(started.splice(0).map(kill)));
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** Changes the address as a user would: the page is not reloaded. */
async function show(page, child) {
  await page.evaluate((pid) => { location.hash = `process=${pid}`; }, child.pid);
  await page.waitForFunction((pid) => document.getElementById('process').value === pid,
    String(child.pid), patience);
}
const poolButton = (page, name) => page.getByRole('button', { name, exact: true });
/** Waits long enough for the charts to have data. */
const seesRounds = async (page, rounds) => {
  for (let seen = await textOf(page, '#updated'); rounds > 0; --rounds) {
    seen = await changed(() => textOf(page, '#updated'), seen);
  }
};

for (const width of [1280, 400]) {
  test(`shows a live process, another one, and that it was killed, at ${width} pixels`, async () => {
    const first = (await waves('tensors', 'batches')).child;
    const second = (await waves('weights')).child;
    const { url } = await serve();
    await withPage(browser, url, { width }, async (page) => {
      await show(page, first);
      await inState(page, 'live');
      await poolButton(page, 'batches').waitFor();
      const before = await tile(page);
      assert.match(before, /[KM]iB$/);
      await changed(() => tile(page), before);
      await seesRounds(page, 5);
      await page.getByText('crest').first().waitFor();
      await picture(page, `serve-${width}`);
      await page.locator('#kind-scopes').getByText('rise').waitFor();
      await page.locator('#kind-arenas').getByText('tensors batch').waitFor();

      await page.locator('#process').selectOption(String(second.pid));
      await poolButton(page, 'weights').waitFor();
      assert.equal(await poolButton(page, 'batches').count(), 0);
      await seesRounds(page, 3);
      await picture(page, `serve-other-${width}`);

      await kill(second);
      await inState(page, 'ended');
      assert.match(await textOf(page, '#state'), new RegExp(`${second.pid} ended at \\d\\d:\\d\\d:\\d\\d`));
      assert.match(await tile(page), /[KM]iB$/);
      await picture(page, `serve-ended-${width}`);

      await page.locator('#process').selectOption(String(first.pid));
      await inState(page, 'live');
    });
  });
}

test('a page opened late shows the history, also of ended processes', async () => {
  const { child } = await waves('tensors');
  const { url } = await serve();
  await withPage(browser, url, {}, async (page) => {
    await show(page, child);
    await inState(page, 'live');
    await seesRounds(page, 4);
    await page.locator('#kind-devices .pick').first().click();
    assert.match(await textOf(page, '#record'), /in_use_bytes\s+allocated_bytes\.all\.current\s+5\.00 MiB/);
    await page.reload();
    await inState(page, 'live');
    await page.locator('#ladder .chart').focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    assert.match(await textOf(page, '#ladder .legend .figure >> nth=0'), /B$/);
    assert.match(await textOf(page, '#ladder .when'), /^\d\d:/);
    await kill(child);
    await inState(page, 'ended');
    const last = await tile(page);
    await page.reload();
    await inState(page, 'ended');
    assert.equal(await tile(page), last);
  });
});

test('the page reconnects to a restarted server', async () => {
  const { child } = await waves('tensors');
  const { child: server, url } = await serve();
  await withPage(browser, url, {}, async (page) => {
    await show(page, child);
    await inState(page, 'live');
    await kill(server);
    await inState(page, 'lost');
    await start(required('PAGE_COMMAND'), 'serve', '--listen', new URL(url).host, '--json');
    await inState(page, 'live');
  });
});

test('the page prompts for the token, or takes it from the address', async () => {
  const { child } = await waves('tensors');
  const file = join(folder, 'token');
  writeFileSync(file, 'open-sesame+16/letters=\n', { mode: 0o600 });
  const { url } = await serve('--token-file', file);
  await withPage(browser, url, {}, async (page) => {
    await inState(page, 'closed');
    await page.locator('#token').fill('not this one, surely');
    await page.keyboard.press('Enter');
    await page.getByText('Wrong token.').waitFor();
    await page.locator('#token').fill('open-sesame+16/letters=');
    await page.keyboard.press('Enter');
    // A page left before the server accepted the token prompts for it again.
    await page.locator('#door').waitFor({ state: 'hidden' });
    await show(page, child);
    await inState(page, 'live');
  });
  await withPage(browser, `${url}#token=open-sesame+16/letters=`, {}, async (page) => {
    await page.waitForFunction(() => !location.hash.includes('token'));
    await page.waitForSelector('body:not([data-state="connecting"]):not([data-state="closed"])');
  });
});

test('a page of another origin cannot read data', async () => {
  const { child } = await waves('tensors');
  const { url } = await serve();
  const stranger = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end());
  await new Promise((done) => stranger.listen(0, '127.0.0.1', done));
  const page = await browser.newPage();
  try {
    await page.goto(`http://127.0.0.1:${stranger.address().port}/`);
    for (const path of ['api/processes', `api/snapshot?process=${child.pid}`, 'metrics']) {
      const answer = await page.evaluate((at) => fetch(at).then((got) => got.text(), () => 'nothing'), url + path);
      assert.equal(answer, 'nothing', path);
    }
  } finally {
    await page.close();
    stranger.close();
  }
});
