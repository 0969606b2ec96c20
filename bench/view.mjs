// Measures the viewer in Chromium: node bench/view.mjs PROGRAM FOLDER FEED LABEL=FILE… [args:LABEL=FILE…]; lines `name value unit` on standard output.
//
// Of a file with `args:` before its label the search in arguments is measured only, without an index and with one.
// A page of 1600 × 900 without a GPU. Times from the start of the program on; frames are counted by the page itself while a key is held; "settled" is
// the time from the release of the key until everything is painted. The slow link is a proxy that delays every byte by 20 ms in each direction and
// sends 20 Mbit/s.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { Browser } from '../tests/browser/chrome.mjs';

const [program, folder, feed, ...files] = process.argv.slice(2);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => performance.now();
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
const figure = (name, value, unit, digits = 0) => console.log(name, value.toFixed(digits), unit);

function start(args, env = {}) {
  const child = spawn(program, ['view', '--no-browser', ...args], { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, ...env } });
  return new Promise((resolve) => child.stdout.once('data', (data) => resolve({ child, url: String(data).trim() })));
}

async function stop(viewer) {
  const ended = new Promise((resolve) => viewer.child.once('exit', resolve));
  viewer.child.kill();
  await ended;
}

const painted = (page) => page.until(() => window.stave && window.stave.state().rows && window.stave.state().rows.length > 0).then(() => page.idle());

/** Holds a key for 3 s: frames per second, the 95th percentile of the time between two, and how long it takes to settle. */
async function hold(page, key) {
  await page.eval(() => {
    window.frames_seen = [];
    window.counting = true;
    const count = (t) => { window.frames_seen.push(t); if (window.counting) requestAnimationFrame(count); };
    requestAnimationFrame(count);
  });
  await page.hold(key, 3000);
  const settled = await page.eval(async () => {
    const start = performance.now();
    window.counting = false;
    await window.stave.idle();
    return performance.now() - start;
  });
  const frames = await page.eval(() => window.frames_seen);
  const gaps = frames.slice(1).map((t, i) => t - frames[i]).sort((a, b) => a - b);
  return { fps: (frames.length - 1) / (frames[frames.length - 1] - frames[0]) * 1000, p95: gaps[Math.floor(gaps.length * 0.95)], settled };
}

async function holds(page, label) {
  const all = [];
  for (const key of ['w', 'd', 'a', 's', 'w', 's']) all.push(await hold(page, key));
  figure(`view_${label}_fps`, Math.min(...all.map((h) => h.fps)), 'frames/s', 1);
  figure(`view_${label}_frame_p95`, Math.max(...all.map((h) => h.p95)), 'ms', 1);
  figure(`view_${label}_settled`, Math.max(...all.map((h) => h.settled)), 'ms');
}

const pss = (pid) => {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'); // what is the tab's own: not the browser's code, whose share depends on others
  return ['Pss_Anon', 'Pss_Shmem'].reduce((sum, key) => sum + Number(new RegExp(`^${key}: *([0-9]+)`, 'm').exec(text)[1]), 0) / 1000;
};

/** Proportional memory of the largest renderer, in MB. */
async function memory(browser) {
  const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
  return Math.max(...processInfo.filter((p) => p.type === 'renderer').map((p) => pss(p.id)));
}

async function emptyTab() {
  const browser = await Browser.launch(fs.mkdtempSync(`${folder}/empty-`));
  await browser.page();
  await sleep(1000);
  const mb = await memory(browser);
  await browser.close();
  return mb;
}

async function openFile(browser, file) {
  const from = now();
  const viewer = await start([file]);
  const page = await browser.page();
  await page.goto(viewer.url);
  const shell = await page.eval(() => Math.max(0, ...performance.getEntriesByType('paint').map((e) => e.startTime)));
  await painted(page);
  return { viewer, page, shell, whole: now() - from };
}

/** Until the first hit is selected. */
async function searchFor(page, text) {
  const ms = await page.eval(async (typed) => {
    const start = performance.now();
    const input = document.querySelector('[data-testid=search]');
    input.focus();
    input.value = typed;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', code: 'Enter', bubbles: true }));
    while (!window.stave.state().selection) await new Promise((resolve) => setTimeout(resolve, 5));
    return performance.now() - start;
  }, text);
  await page.press('Escape');
  await page.press('Escape');
  return ms;
}

/** Bytes of all files of the page, as they are sent. */
async function measurePage(page) {
  const bytes = await page.eval(() => performance.getEntries().filter((e) => e.encodedBodySize && !e.name.includes('/api/')).reduce((sum, e) => sum + e.encodedBodySize, 0));
  figure('view_page_size', bytes / 1000, 'kB');
}

/** From the first letter to the first hit on screen: a part of a path, which no name has. */
async function measureArgs(browser, file, label) {
  const cache = fs.mkdtempSync(`${folder}/cache-`), env = { XDG_CACHE_HOME: cache };
  const index = () => fs.existsSync(`${cache}/stave`) && fs.readdirSync(`${cache}/stave`).some((name) => !name.includes('tmp') && fs.statSync(`${cache}/stave/${name}`).size > 1e6);
  for (const [suffix, args] of [['no_index', ['--no-index']], [null, []], ['index', []]]) {
    const viewer = await start([...args, file], env), page = await browser.page();
    await page.goto(viewer.url);
    await painted(page);
    if (!suffix) while (!index()) await sleep(200);
    else {
      const times = [];
      for (const text of ['shard_13/part_00', 'shard_77/', 'part_03999']) times.push(await searchFor(page, text));
      figure(`view_${label}_args_search_${suffix}`, Math.max(...times), 'ms');
    }
    await close(page);
    await stop(viewer);
    if (!suffix) await sleep(500);
  }
  fs.rmSync(cache, { recursive: true });
}

async function measureArea(page, label) {
  const box = await page.box('[data-testid=timeline]');
  await page.press('f');
  await page.idle();
  const from = now();
  await page.drag(box.x + 12, box.y + 30, box.x + box.width - 2, box.y + box.height - 10); // right of what widens the names
  await page.until(() => document.querySelector('[data-testid=area-table] tbody tr'));
  await page.idle();
  figure(`view_${label}_area`, now() - from, 'ms');
  await page.press('Escape');
}

/** Bytes come `delay` ms later and at most `rate` bytes per ms; the name in Host is put right. */
function slowLink(target, delay, rate) {
  const pipe = (from, to, edit) => {
    let free = 0;
    from.on('data', (data) => {
      const bytes = edit ? edit(data) : data;
      free = Math.max(free, now()) + bytes.length / rate;
      setTimeout(() => to.writable && to.write(bytes), free - now() + delay);
    });
    from.on('close', () => setTimeout(() => to.end(), delay + 50));
    from.on('error', () => to.destroy());
  };
  const server = net.createServer((client) => {
    const up = net.connect(target, '127.0.0.1');
    const here = `127.0.0.1:${server.address().port}`;
    pipe(client, up, (data) => Buffer.from(data.toString('latin1').replaceAll(here, `127.0.0.1:${target}`), 'latin1'));
    pipe(up, client);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function measureSlowLink(browser, file, label) {
  const viewer = await start([file]);
  const url = new URL(viewer.url);
  const server = await slowLink(Number(url.port), 20, 2500);
  const page = await browser.page();
  const sizes = [], asked = new Map();
  page.event = ((event) => (method, params) => {
    if (method === 'Network.loadingFinished') sizes.push(params.encodedDataLength);
    if (process.env.VIEW_SIZES && method === 'Network.loadingFinished' && params.encodedDataLength > 120000) console.error(params.encodedDataLength, asked.get(params.requestId));
    if (method === 'Network.requestWillBeSent') asked.set(params.requestId, `${params.request.url} ${params.request.postData || ''}`.slice(0, 400));
    event.call(page, method, params);
  })(page.event);
  await page.goto(`http://127.0.0.1:${server.address().port}/${url.hash}`);
  await painted(page);
  sizes.length = 0;
  await holds(page, `${label}_slow_link`);
  figure(`view_${label}_slow_link_reply`, Math.max(...sizes) / 1000, 'kB');
  server.close();
  await stop(viewer);
}

/** How old the newest event is that the page has, while a program emits 100,000 events per second. */
async function measureFollow(browser) {
  const file = `${folder}/live.pftrace`;
  const source = spawn(feed, ['100000', '12'], { env: { ...process.env, STAVE_OUT: file }, stdio: 'ignore' });
  await sleep(1500);
  const viewer = await start(['--follow', file]);
  const page = await browser.page();
  await page.goto(viewer.url);
  await painted(page);
  const ages = [];
  for (let i = 0; i < 60; i++) {
    const last = await page.eval(() => window.stave.state().last);
    ages.push(Number(process.hrtime.bigint() - BigInt(last)) / 1e6);
    await sleep(100);
  }
  source.kill();
  await stop(viewer);
  figure('view_follow_age_p95', ages.sort((a, b) => a - b)[Math.floor(ages.length * 0.95)], 'ms');
}

const close = (page) => browser.send('Target.closeTarget', { targetId: page.targetId });

/** The tab in a browser of its own, after it was used. */
async function measureTab(file, label, empty) {
  const other = await Browser.launch(fs.mkdtempSync(`${folder}/tab-`));
  const { viewer, page } = await openFile(other, file);
  for (const key of ['w', 'd', 's']) await hold(page, key);
  figure(`view_${label}_tab`, await memory(other) - empty, 'MB above an empty tab');
  await other.close();
  await stop(viewer);
}

const browser = await Browser.launch(fs.mkdtempSync(`${folder}/profile-`));
try {
  const empty = await emptyTab();
  for (const item of files.filter((one) => !one.startsWith('args:'))) {
    const [label, file] = item.split('=');
    const opened = [];
    for (let i = 0; i < 3; i++) {
      if (i) {
        await close(opened[i - 1].page);
        await stop(opened[i - 1].viewer);
      }
      opened.push(await openFile(browser, file));
    }
    const { viewer, page } = opened[2];
    figure(`view_${label}_shell`, median(opened.map((o) => o.shell)), 'ms');
    figure(`view_${label}_open`, median(opened.map((o) => o.whole)) / 1000, 's', 2);
    if (item === files[0]) await measurePage(page);
    await holds(page, label);
    figure(`view_${label}_search`, await searchFor(page, 'operation_17'), 'ms');
    await measureArea(page, label);
    await close(page);
    await stop(viewer);
    await measureTab(file, label, empty);
  }
  for (const item of files.filter((one) => one.startsWith('args:'))) {
    const [label, file] = item.slice(5).split('=');
    await measureArgs(browser, file, label);
  }
  const whole = files.filter((one) => !one.startsWith('args:'));
  if (whole.length) {
    const [label, file] = whole[Math.min(1, whole.length - 1)].split('=');
    await measureSlowLink(browser, file, label);
    await measureFollow(browser);
  }
} finally {
  await browser.close();
}
