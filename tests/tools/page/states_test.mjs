// Tests the page in all its states, against a simulated server.

import assert from 'node:assert/strict';
import { after, beforeEach, afterEach } from 'node:test';
import { changed, inState, patience, picture, required, startBrowser, test, textOf, tile, withPage } from './browser.mjs';
import { FakeServer } from './fake_server.mjs';
import { makeProcess } from './made_up.mjs';

const browser = await startBrowser();
let server;
let url;

async function start() {
  server = new FakeServer(required('PAGE_FOLDER'), required('PAGE_UPLOT'));
  url = await server.listen();
}

const open = (options, use) => withPage(browser, options.url ?? url, options, use);
const live = (page) => inState(page, 'live');

beforeEach(start);
afterEach(() => server.close());
after(() => browser.close());

test('reports that there is no process, and shows one as soon as it exists', () => open({}, async (page) => {
  await inState(page, 'empty');
  assert.match(await textOf(page, '#empty'), /No process with a pool[\s\S]*Start one/);
  await picture(page, 'empty');
  server.add(makeProcess(4711, 'train'));
  await live(page);
  assert.equal(await page.locator('#empty').isVisible(), false);
}));

for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [400, 'light'], [400, 'dark']]) {
  test(`is readable at ${width} pixels in ${scheme}`, async () => {
    server.add(makeProcess(4711, 'train'));
    await open({ width, scheme }, async (page) => {
      await live(page);
      await page.locator('.events li').nth(7).waitFor();
      await picture(page, `live-${width}-${scheme}`);
      const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= there, `${needed} pixels are needed, ${there} are available`);
      assert.deepEqual(await page.evaluate(cutTexts), []);
    });
  });
}

/** Returns the texts that do not fit into their elements. */
function cutTexts() {
  return [...document.querySelectorAll('.tile strong, .tile small, td, th, dd, .legend li, .kind')]
    .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline')
    .map((one) => one.textContent);
}

test('updates its values with each snapshot', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const first = await tile(page);
    assert.match(first, /^\d[\d.]* MiB$/);
    await changed(() => tile(page), first, async () => server.tick());
  });
});

test('shows no call stacks without a token', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    await page.getByText('only shown with --token-file').waitFor();
    assert.equal(await page.locator('#stacks iframe').isVisible(), false);
  });
});

test('shows call stacks now, at an earlier time, and compared', async () => {
  server.add(makeProcess(4711, 'train'));
  server.profileTimes = [1000, 11_000, 21_000];
  await open({}, async (page) => {
    await live(page);
    const graph = (text) => page.frameLocator('#stacks iframe').getByText(text, { exact: true }).waitFor();
    await page.locator('#stacks').scrollIntoViewIfNeeded();
    await graph('process=4711');
    const slider = page.getByLabel('Time of the flame graph');
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await graph('process=4711&time=21000');
    assert.match(await textOf(page, '#stacks output'), /^\d\d:\d\d:\d\d/);
    for (const key of ['ArrowRight', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
    await graph('process=4711&time=21000');
    await page.getByLabel('compare with the oldest one').check();
    await graph('process=4711&time=21000&before=1000');
    await page.locator('#stacks').getByText('now', { exact: true }).first().click();
    await graph('process=4711&before=1000');
    assert.equal(await slider.inputValue(), '3');
  });
});

test('shows the history when opened late, also by arrow keys', async () => {
  server.add(makeProcess(4711, 'train', ['tensors']));
  await open({}, async (page) => {
    await live(page);
    await page.locator('#ladder .chart').focus();
    for (let times = 0; times < 5; ++times) await page.keyboard.press('PageUp');
    assert.match(await textOf(page, '#ladder .when'), /^\d\d:\d\d:\d\d$/);
    const past = await textOf(page, '#ladder .legend .figure >> nth=0');
    assert.match(past, /MiB$/);
    assert.notEqual(past, await tile(page));
    // The other charts show the same moment.
    assert.equal(await textOf(page, '#sources .when'), await textOf(page, '#ladder .when'));
    await page.keyboard.press('Escape');
    assert.equal(await textOf(page, '#ladder .when'), 'now');
  });
});

test('shows the values at the mouse', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const box = await page.locator('#ladder .u-over').boundingBox();
    await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
    await page.waitForFunction(() => /\d/.test(document.querySelector('#ladder .when').textContent), null, patience);
    await picture(page, 'hover');
  });
});

test('shows one pool or the sum of all', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const all = await tile(page, 1);
    await page.getByRole('button', { name: 'batches' }).click();
    assert.notEqual(await tile(page, 1), all);
    assert.equal(await page.locator('#pool').inputValue(), '2');
    await page.locator('#pool').selectOption('all');
    assert.equal(await tile(page, 1), all);
  });
});

test('shows all values of the record that is chosen, beside PyTorch’s names', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    assert.equal(await page.locator('#record').isVisible(), false);
    const row = (word) => page.locator('#record tr', { hasText: word }).first();
    await page.getByRole('button', { name: 'activations' }).click();
    assert.match(await textOf(page, '#record h2'), /^activations, of allocators of device memory$/);
    assert.match(await row('reserved_bytes').innerText(), /^capacity_bytes\s+reserved_bytes\.all\.current\s+41\.8 GiB/);
    assert.match(await row('pressures').innerText(), /pressures\s+num_alloc_retries\s+2/);
    const head = page.locator('#kind-devices th', { hasText: 'capacity' });
    assert.equal(await head.getAttribute('title'), 'About capacity_bytes.');
    assert.match(await textOf(page, '#kind-device_streams'), /stream 2 holds 64 MiB, of which 40 MiB are in use; 20 MiB that were freed have waited/);
    await page.getByRole('button', { name: 'staging' }).click();
    assert.match(await textOf(page, '#record h2'), /^staging/);
    assert.match(await row('reserved_bytes').innerText(), /563 MiB/);
    await page.getByRole('button', { name: 'forward' }).click();
    assert.match(await textOf(page, '#record h2'), /^forward, of scopes$/, 'its record has no number');
  });
});

test('shows records as their tables describe them', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    assert.match(await textOf(page, '#kind-planned'), /training step\s+serving\s+310 MiB\s+388 MiB\s+311 MiB/);
    assert.match(await textOf(page, '#kind-planned'), /validation\s+learning\s+110 MiB\s+148 MiB\s+–/);
    const row = (name) => page.locator('#kind-stashes tr', { hasText: name }).first().innerText();
    assert.match(await row('embeddings'), /frozen\s+1\s+252 MiB\s+1\d\d MiB\s+6\d\.\d %\s+5.50 s\s+model/);
    assert.match(await row('optimizer state'), /stashes\s+12\s+512 MiB\s+4\d\d MiB\s+\d\d\.\d %\s+5\.50 s\s+none/);
    await page.locator('#kind-stashes th button', { hasText: 'takes' }).click();
    assert.deepEqual(await page.locator('#kind-stashes tbody td.name').allInnerTexts(), ['optimizer state', 'images', 'embeddings']);
    await page.getByRole('button', { name: 'loader' }).last().click();
    assert.match(await textOf(page, '#record h2'), /^loader, of queues of batches$/, 'a kind that the page has never heard of');
    assert.match(await textOf(page, '#record'), /batches\s+7/);
  });
});

test('shows how fast the numbers of a record grow, and how high they were', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const rates = () => page.locator('#kind-devices tbody tr').first().locator('td').last().innerText();
    await changed(rates, await rates(), async () => server.tick());
    assert.match(await rates(), /^[\d,.]+( k)?$/);
    assert.match(await textOf(page, '#kind-arenas thead'), /highest/);
  });
});

test('shows the budgets as an indented tree, with their use against the limits', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const names = await page.locator('#kind-budgets tbody td.name').allTextContents();
    const step = '\u2003';
    assert.deepEqual(names, ['process', `${step}loader`, `${step}${step}images`, `${step}${step}records`, `${step}model`, `${step}${step}request 4711`]);
    const row = (name) => page.locator('#kind-budgets tr', { hasText: name }).first().innerText();
    assert.match(await row('loader'), /17\d MiB\s+256 MiB\s+6\d\.\d %\s+192 MiB/);
    assert.match(await row('records'), /none\s+–\s+none/);
    const used = await page.locator('#kind-budgets .bar-line').evaluateAll((all) => all.map((bar) =>
      bar.children[0].getBoundingClientRect().width / bar.getBoundingClientRect().width));
    assert.ok(Math.abs(used[1] - 175 / 256) < 0.02, `${used[1]}`);
  });
});

test('hides the panels of kinds without records', async () => {
  const made = makeProcess(4711, 'train');
  made.planned = [];
  made.budgets = [];
  made.stashes = [];
  made.devices = [];
  server.add(made);
  await open({}, async (page) => {
    await live(page);
    for (const kind of ['planned', 'budgets', 'stashes', 'devices', 'device_streams']) {
      assert.equal(await page.locator(`#kind-${kind}`).isVisible(), false, kind);
    }
    assert.equal(await page.locator('#kind-arenas').isVisible(), true);
  });
});

test('changes the process', async () => {
  server.add(makeProcess(4711, 'train'));
  server.add(makeProcess(815, 'infer', ['weights']));
  await open({}, async (page) => {
    await live(page);
    await page.locator('#process').selectOption('815');
    await page.getByRole('button', { name: 'weights' }).waitFor();
    assert.match(await textOf(page, '#state'), /infer 815/);
    assert.match(page.url(), /#process=815$/);
    await page.reload();
    await page.getByRole('button', { name: 'weights' }).waitFor();
  });
});

test('follows a change of the process in the address', async () => {
  server.add(makeProcess(815, 'infer', ['weights']));
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    await page.evaluate(() => { location.hash = 'process=4711'; });
    await page.getByRole('button', { name: 'batches' }).waitFor();
    assert.match(await textOf(page, '#state'), /train 4711/);
    await page.evaluate(() => { location.hash = 'process=1'; });
    await page.evaluate(() => new Promise((done) => setTimeout(done)));
    assert.equal(await page.locator('#process').inputValue(), '4711');
  });
});

test('does not overwrite an address that is being entered', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    assert.equal(new URL(page.url()).hash, '');
  });
});

test('reports the end of a process, and keeps its last statistics', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const last = await tile(page);
    server.end(4711);
    await inState(page, 'ended');
    assert.match(await textOf(page, '#state'), /^train 4711 ended at \d\d:\d\d:\d\d: these are its last statistics$/);
    assert.equal(await tile(page), last);
    await picture(page, 'ended');
  });
});

test('shows the last statistics of a process that ended before', async () => {
  server.add(makeProcess(4711, 'train'));
  server.ended.add(4711);
  await open({}, async (page) => {
    await inState(page, 'ended');
    assert.match(await tile(page), /MiB/);
  });
});

test('reports a lost connection, reconnects and continues', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    await server.close();
    await inState(page, 'lost');
    assert.equal(await textOf(page, '#state'), 'Connection lost, reconnecting');
    await picture(page, 'lost');
    await server.listen(server.port);
    await live(page);
  });
});

test('reports why a process cannot be read', async () => {
  server.unreadable = [{ process: 9, name: 'other', readable: false, problem: 'it is not yours: run as root', ended: false }];
  await open({}, async (page) => {
    await inState(page, 'unreadable');
    assert.match(await textOf(page, '#state'), /other 9 cannot be read: it is not yours: run as root/);
  });
});

test('prompts for the token and accepts no other', async () => {
  server.add(makeProcess(4711, 'train'));
  server.token = 'a+b c';
  await open({}, async (page) => {
    await inState(page, 'closed');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'token');
    await picture(page, 'token');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('Wrong token.').waitFor();
    await page.locator('#token').fill('a+b c');
    await page.keyboard.press('Enter');
    await live(page);
    assert.equal(await page.locator('#door').isVisible(), false);
  });
});

test('removes the token from its address at once', async () => {
  server.add(makeProcess(4711, 'train'));
  server.token = 'a+b/c=';
  await open({ url: `${url}#token=a+b/c=` }, async (page) => {
    await live(page);
    assert.doesNotMatch(page.url(), /token/);
    await page.goBack();
    assert.doesNotMatch(page.url(), /token/);
  });
});

test('shows hostile names as plain text', async () => {
  const hostile = '<img src=x onerror=alert(1)>';
  server.add(makeProcess(4711, `"><script>alert(2)</script>`, [hostile, 'abc\u202egnp.exe', '\n\t\u0000']));
  await open({}, async (page) => {
    await live(page);
    await page.getByRole('button', { name: hostile, exact: true }).waitFor();
    assert.equal(await page.locator('main img, main script').count(), 0);
    assert.ok((await textOf(page, '#pools')).includes('abc\ufffdgnp.exe'));
    assert.ok((await textOf(page, '#state')).includes('<script>alert(2)</script>'));
    await picture(page, 'hostile');
  });
});

const positions = () => [...document.querySelectorAll('.card, .tile, th, .legend li, header *, h2')].map((one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return [one.id || one.className || one.tagName, Math.round(x), Math.round(y + scrollY), Math.round(width), Math.round(height)].join(' ');
});

for (const width of [1280, 400]) {
  test(`keeps the layout when values change, at ${width} pixels`, async () => {
    const made = makeProcess(4711, 'train');
    server.add(made);
    await open({ width }, async (page) => {
      await live(page);
      // From here on, the pool's header has its width, and nothing may move.
      const first = await page.evaluate(positions);
      for (const scale of [7, 900 * 2 ** 20, 3 * 2 ** 40]) {
        const was = await tile(page);
        for (const pool of made.pools) pool.scale = scale;
        await changed(() => tile(page), was, async () => server.tick());
        assert.deepEqual(await page.evaluate(positions), first);
      }
    });
  });
}

test('can be used by keyboard alone', async () => {
  server.add(makeProcess(4711, 'train'));
  server.add(makeProcess(815, 'infer', ['weights']));
  await open({}, async (page) => {
    await live(page);
    await page.keyboard.press(']');
    assert.equal(await page.locator('#pool').inputValue(), '1');
    await page.keyboard.press('0');
    assert.equal(await page.locator('#pool').inputValue(), 'all');
    await page.keyboard.press('t');
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await page.keyboard.press('w');
    assert.equal(await textOf(page, '#window'), '2 min');
    await page.keyboard.press('h');
    await inState(page, 'held');
    const still = await tile(page);
    server.tick();
    assert.equal(await tile(page), still);
    await page.keyboard.press('h');
    await live(page);
    await page.keyboard.press('p');
    await page.getByRole('button', { name: 'weights' }).waitFor();
  });
});

test('shows the focus, in the order of the page', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await live(page);
    const seen = [];
    for (let times = 0; times < 120; ++times) {
      await page.keyboard.press('Tab');
      const [name, outline] = await page.evaluate(() => {
        const { activeElement: one } = document;
        return [one.id || one.closest('[id]')?.id || one.tagName, getComputedStyle(one).outlineStyle];
      });
      if (name !== 'BODY') assert.equal(outline, 'solid', `no outline on ${name}`);
      seen.push(name);
    }
    const order = [...new Set(seen)].filter((name) => name !== 'BODY');
    assert.deepEqual(order.slice(1, 8), ['process', 'pool', 'window', 'hold', 'theme', 'ladder', 'pools']);
    assert.ok(['sources', 'rounding', 'buckets', 'kind-scopes', 'threads', 'events'].every((name) => order.includes(name)), order.join());
  });
});

test('closes its connection when hidden for long, and reconnects when visible', async () => {
  server.add(makeProcess(4711, 'train'));
  await open({}, async (page) => {
    await page.clock.install();
    await page.reload();
    await live(page);
    const watched = (count) => changed(async () => server.watchers === count, false);
    await watched(1);
    const turn = (hidden) => page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
    await turn(true);
    await page.clock.runFor(35_000);
    await watched(0);
    await turn(false);
    await watched(1);
  });
});
