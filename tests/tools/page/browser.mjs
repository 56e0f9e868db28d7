// Controls the browser. A test is skipped if the browser or its driver is missing.

import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { test as nodeTest } from 'node:test';

const skipped = 77;
export const patience = { timeout: 30_000 };

function leave(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(skipped);
}

export function required(name) {
  return process.env[name] ?? leave(`${name} is not set: run this through ctest`);
}

const [part, parts] = required('PAGE_PART').split('/').map(Number);
let tests = 0;

/** Like node's `test`, but leaves out the tests of other parts: PAGE_PART is a part, such as `2/4`. */
export function test(name, run) {
  if (tests++ % parts === part - 1) nodeTest(name, run);
}

function findBrowser() {
  for (const folder of process.env.PATH.split(delimiter)) {
    for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
      if (existsSync(join(folder, name))) return join(folder, name);
    }
  }
  return leave('no browser is here: install the Debian package chromium');
}

function findDriver() {
  try {
    return createRequire(join(required('PAGE_TEST_MODULES'), 'here.js'))('playwright-core');
  } catch {
    return leave('playwright-core is not here: npm could not fetch it when cmake ran');
  }
}

const screenshots = required('PAGE_SCREENSHOTS');
mkdirSync(screenshots, { recursive: true });

export async function startBrowser() {
  const executablePath = findBrowser();
  return findDriver().chromium.launch({
    executablePath,
    // The browser's sandbox needs more rights than a container grants; it only loads our own page.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
  });
}

/** Collects errors: failing scripts, and violations of the content security policy. */
function watch(page) {
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('dialog', (dialog) => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('console', (message) => {
    const isNetwork = /Failed to load resource|net::ERR/.test(message.text());
    if (message.type() === 'error' && !isNetwork) faults.push(message.text());
  });
  return faults;
}

/** Calls `use(page)` with the page loaded, and throws if errors were collected. */
export async function withPage(browser, url, { width = 1280, scheme = 'light' }, use) {
  const context = await browser.newContext({
    viewport: { width, height: 800 }, colorScheme: scheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(patience.timeout);
  const faults = watch(page);
  try {
    await page.goto(url);
    await use(page);
  } finally {
    await context.close();
  }
  if (faults.length > 0) throw new Error(`the page did what it must not: ${faults.join('; ')}`);
}

export const picture = (page, name) =>
  page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });

/** Waits for a state of the page; if it is not reached, reports the present state. */
export async function inState(page, state) {
  try {
    await page.waitForSelector(`body[data-state="${state}"]`, patience);
  } catch (error) {
    const found = await page.evaluate(() => `${document.body.dataset.state} ("${
      document.getElementById('state').textContent}") at ${location.href}`);
    throw new Error(`the page is ${found}, not ${state}`, { cause: error });
  }
}
export const textOf = (page, where) => page.locator(where).innerText();
export const tile = (page, index = 0) => page.locator('.tile strong').nth(index).innerText();

/** Waits until `read()` returns a value other than `before`, and returns it. */
export async function changed(read, before, between = async () => {}) {
  const until = Date.now() + patience.timeout;
  while (Date.now() < until) {
    const now = await read();
    if (now !== before) return now;
    await between();
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error(`it stayed ${JSON.stringify(before)}`);
}
