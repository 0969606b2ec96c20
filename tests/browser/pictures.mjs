// Pictures of the page against those in docs/images, within a tolerance: fonts differ between machines, the picture must not.
// UPDATE=1 writes them: `UPDATE=1 tests/run -f browser/pictures build:browser`. The traces are made here, so they are the same everywhere.
import fs from 'node:fs';
import { check, clean, open, random, run, same, stamp } from './harness.mjs';
import { makeEngine, makeJob, makeServing, makeTorch, makeWaits } from './made.mjs';

const IMAGES = `${process.env.SRC}/docs/images`;
const US = 1000n, MS = 1000000n, BASE = 100000000000n, STEPS = 24;
const MOST_BYTES = 150000;
const LAYERS = ['embed', 'attention', 'mlp', 'attention', 'mlp', 'norm', 'loss'];

/** A training run: a trainer, two loaders, a device with two streams, counters; arrows from launches to kernels. */
function makeTrace(file) {
  const next = random(5), events = [], head = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=4711 name="train.py"'];
  ['MainThread', 'loader 0', 'loader 1'].forEach((name, i) => head.push(`track #${i + 2} thread uuid=0x${i + 2} parent=#1 pid=4711 tid=${4711 + i} name="${name}"`));
  head.push('track #9 process uuid=0x9 pid=1 name="GPU 0"', 'track #10 thread uuid=0x10 parent=#9 pid=1 tid=7 name="stream 7 (compute)"', 'track #11 thread uuid=0x11 parent=#9 pid=1 tid=20 name="stream 20 (copy)"');
  head.push('track #12 counter uuid=0x12 parent=#1 name="loss"', 'track #13 counter uuid=0x13 parent=#9 name="memory" unit="MiB"', 'track #14 process uuid=0x14 pid=9 name="idle helper"');
  const slice = (t, track, name, dur, rest = '') => events.push([t, `slice #${track} "${name}" dur=${stamp(dur)}${rest}`]);
  const some = (least, most) => BigInt(Math.floor((least + next() * (most - least)) * 1000));
  let t = BASE, flow = 1, gpu = BASE;
  for (let step = 0; step < STEPS; step++) {
    const begin = t, wait = step % 8 === 5 ? 9n * MS : some(200, 900);
    slice(t, 2 + 1 + step % 2, 'load batch', 6n * MS + some(0, 4000), ` {batch=${step} file="shard-${step % 4}.bin"}`);
    slice(t, 2, 'wait for data', wait);
    t += wait;
    slice(t, 11, 'copy to device', MS + some(0, 300), ` {bytes=${1 << 20}}`);
    for (const phase of ['forward', 'backward']) {
      const start = t;
      for (const layer of LAYERS) {
        const cpu = some(250, 500), kernel = some(500, 1400) * (phase === 'forward' ? 1n : 2n);
        slice(t, 2, layer, cpu);
        slice(t + 30n * US, 2, 'launch', 40n * US);
        events.push([t + 30n * US, `flow #2 "launch" {@flow_begin:0x${flow.toString(16)}}`]);
        gpu = gpu > t + 100n * US ? gpu : t + 100n * US;
        slice(gpu, 10, `${layer}_${phase}`, kernel, ` {grid="[128, 1, 1]" occupancy=0.${50 + Math.floor(next() * 49)}}`);
        events.push([gpu, `flow #10 "launch" {@flow_end:0x${(flow++).toString(16)}}`]);
        gpu += kernel + 10n * US;
        t += cpu + 20n * US;
      }
      slice(start, 2, phase, t - start, ` {step=${step}}`);
    }
    t = gpu > t ? gpu : t;
    slice(t, 2, 'optimizer', MS);
    t += MS;
    events.push([t, `counter #12 {${(4 / (1 + step / 4) + next() / 3).toFixed(3)}}`], [t, `counter #13 {${2000 + step * 40 + Math.floor(next() * 300)}}`]);
    if (step % 10 === 9) { slice(t, 2, 'checkpoint', 14n * MS, ' {path="model.pt"}'); t += 14n * MS; }
    slice(begin, 2, 'step', t - begin, ` {step=${step} lr=0.001}`);
    events.push([t, 'instant #2 "step done"']);
    t += some(50, 200);
  }
  const longFirst = (text) => { const dur = /dur=(\S+)/.exec(text); return dur ? -Number(dur[1]) : 0; };
  events.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : longFirst(a[1]) - longFirst(b[1])));
  fs.writeFileSync(file, head.concat(events.map(([at, text]) => `${stamp(at)} ${text}`)).join('\n') + '\n');
}

/** Mean and greatest difference of two pictures in cells of 20 × 20 pixels, 0 … 255, measured by the browser. */
function compare(page, a, b) {
  return page.eval(async (one, two) => {
    const load = async (text) => createImageBitmap(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], { type: 'image/png' }));
    const [x, y] = await Promise.all([load(one), load(two)]);
    if (x.width !== y.width || x.height !== y.height) return { size: [x.width, x.height, y.width, y.height] };
    const cells = (image) => {
      const canvas = new OffscreenCanvas(Math.floor(image.width / 20), Math.floor(image.height / 20)), pen = canvas.getContext('2d');
      const full = new OffscreenCanvas(image.width, image.height), wide = full.getContext('2d');
      wide.drawImage(image, 0, 0);
      const data = wide.getImageData(0, 0, image.width, image.height).data, sums = new Float64Array(canvas.width * canvas.height * 3);
      for (let v = 0; v < canvas.height * 20; v++) for (let u = 0; u < canvas.width * 20; u++) for (let c = 0; c < 3; c++) sums[(Math.floor(v / 20) * canvas.width + Math.floor(u / 20)) * 3 + c] += data[(v * image.width + u) * 4 + c] / 400;
      return pen && sums;
    };
    const p = cells(x), q = cells(y);
    let sum = 0, most = 0;
    p.forEach((value, i) => { const d = Math.abs(value - q[i]); sum += d; most = Math.max(most, d); });
    return { mean: sum / p.length, most };
  }, a, b);
}

async function picture(page, name) {
  await page.idle();
  const { data } = await page.send('Page.captureScreenshot', { format: 'png' }), file = `${IMAGES}/${name}.png`;
  if (process.env.UPDATE) fs.writeFileSync(file, Buffer.from(data, 'base64'));
  if (fs.existsSync(file)) check(`${name}_is_small`, fs.statSync(file).size <= MOST_BYTES, String(fs.statSync(file).size));
  if (!fs.existsSync(file)) return check(`${name}_is_in_docs`, false, file);
  const found = await compare(page, data, fs.readFileSync(file).toString('base64'));
  return check(`${name}_looks_as_in_docs`, found.mean !== undefined && found.mean < 2.5 && found.most < 110, found);
}

async function selectSlice(page, name, at) {
  const [hit] = await page.eval(async (text, i) => {
    const answer = await (await fetch('/api/search', { method: 'POST', headers: { 'X-Stave-Token': sessionStorage.getItem('stave.token') }, body: JSON.stringify({ text, limit: i + 1 }) })).json();
    return [answer.hits[i]];
  }, name, at);
  await page.eval((h) => { const p = 14000000n; window.stave.go((BigInt(h.ts) - p).toString(), (BigInt(h.ts) + p).toString()); }, hit);
  await page.idle();
  const box = await page.box('[data-testid=timeline]');
  const point = await page.eval((b, h) => {
    const s = window.stave.state(), row = s.rows.find((r) => r.id === h.row), middle = BigInt(h.ts) + BigInt(h.dur) / 2n;
    return { x: b.x + Number((middle - BigInt(s.from)) * BigInt(s.width) / (BigInt(s.to) - BigInt(s.from))), y: b.y + row.y + 3 + h.line * 18 + 9 };
  }, box, hit);
  await page.click(point.x, point.y);
  await page.idle();
  await page.mouse('mouseMoved', 5, 5);
  await page.idle();
  return hit;
}

/** Every page in both themes, each of a trace that has something for it. The dark ones take as long again: in `make test-long`, and where they are written. */
const SCHEMES = process.env.UPDATE || process.env.STAVE_LONG ? ['light', 'dark'] : ['light'];
const PAGES = [
  ['explain', 'waits.txt', (file) => makeWaits(file, 'shard-0005.tar')], ['waits', 'waits.txt'], ['io', 'waits.txt'], ['steps', 'torch.json', makeTorch], ['gpu', 'torch.json'],
  ['ops', 'torch.json'], ['serving', 'batching_trace.json', makeServing], ['llm', 'engine.json', makeEngine], ['ranks', 'job', (folder) => { fs.mkdirSync(folder); [0, 1].forEach((rank) => makeJob(`${folder}/rank${rank}.txt`, rank)); }],
];

async function pages(browser, start, tmp) {
  const viewers = new Map();
  for (const [id, name, make] of PAGES) {
    const file = `${tmp}/${name}`;
    if (make) make(file);
    if (!viewers.has(name)) viewers.set(name, await start(fs.statSync(file).isDirectory() ? fs.readdirSync(file).sort().map((one) => `${file}/${one}`) : file));
    for (const scheme of SCHEMES) {
      const viewer = viewers.get(name), page = await open(browser, `${viewer.url}&page=${id}`, { width: 1200, height: 760, scheme });
      await page.until(() => document.querySelector('#page section'));
      await picture(page, `view_${id}${scheme === 'dark' ? '_dark' : ''}`);
      await clean(`${id}_${scheme}`, page, viewer.origin);
      await browser.send('Target.closeTarget', { targetId: page.targetId });
    }
  }
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/train.txt`;
  makeTrace(file);
  const viewer = await start(file), size = { width: 1400, height: 800 };
  const light = await open(browser, viewer.url, size);
  await picture(light, 'view_timeline');
  const dark = await open(browser, viewer.url, { ...size, scheme: 'dark' });
  same('the_system_prefers_dark', await dark.eval(() => document.documentElement.dataset.theme), 'dark');
  const hit = await selectSlice(dark, 'attention_forward', 12);
  same('a_kernel_is_selected', (await dark.state()).selection.slice, hit.slice);
  await picture(dark, 'view_slice');
  await light.press('a', 'ctrl');
  await picture(light, 'view_area');
  const still = await open(browser, viewer.url, { ...size, scheme: 'dark' });
  await picture(still, 'view_timeline_dark');
  await clean('light', light, viewer.origin);
  await clean('dark', dark, viewer.origin);
  await pages(browser, start, tmp);
});
