// The exported page answers as the server does: windows byte by byte, slices, searches, areas.
import fs from 'node:fs';
import { spawnSync } from 'node:child_process';
import { Viewer, check, same, random } from './harness.mjs';

const { STAVE, TMP, SRC } = process.env;
const file = `${TMP}/run.json`, page = `${TMP}/run.html`;
const next = random(5);

function events() {
  const all = [{ ph: 'M', name: 'process_name', pid: 1, args: { name: 'train' } }];
  for (let i = 0; i < 400; i++) {
    const at = Math.floor(next() * 100000) / 10;
    all.push({ ph: 'X', pid: 1, tid: 1 + i % 3, ts: at, dur: next() < 0.1 ? 0 : Math.floor(next() * 300) / 10, name: `op ${i % 7}`, cat: `c${i % 3}`, args: i % 5 ? undefined : { n: i, text: '<b>é</b>' } });
  }
  for (let i = 0; i < 30; i++) all.push({ ph: 'b', cat: 'r', id: i, pid: 1, tid: 1, ts: i * 300, name: 'request' }, { ph: 'e', cat: 'r', id: i, pid: 1, tid: 1, ts: i * 300 + 900, name: 'request' });
  for (let i = 0; i < 50; i++) all.push({ ph: 'C', pid: 1, tid: 1, ts: i * 170, name: 'memory', args: { v: Math.floor(next() * 100) } });
  all.push({ ph: 'B', pid: 1, tid: 9, ts: 4000, name: 'open' }, { ph: 's', id: 7, pid: 1, tid: 1, ts: 0, name: 'f' }, { ph: 'i', pid: 1, tid: 2, ts: 700, name: 'mark', s: 't' });
  return all;
}

fs.writeFileSync(file, JSON.stringify(events()));
const made = spawnSync(STAVE, ['view', '--export', page, file], { encoding: 'utf8' });
same('it_is_exported', [made.status, made.stdout], [0, '']);
const html = fs.readFileSync(page, 'utf8'), bundle = JSON.parse(/id="stave-bundle">(.*)<\/script>/.exec(html)[1]);
check('it_loads_nothing', !/(src|href)="(?!data:)/.test(html.replace(/<script type="application\/json".*<\/script>/, '')), 'an address in the page');
globalThis.window = {};
// older nodes take a .js file for CommonJS
const { start } = await import(`data:text/javascript;base64,${fs.readFileSync(`${SRC}/src/view/offline/offline.js`).toString('base64')}`);
await start(bundle.trace);
const viewer = await Viewer.start(file);
try {
  let trace;
  do trace = await viewer.api('/api/trace'); while (trace.state !== 'ready');
  const offline = async (path, body) => window.fetch(path, body ? { body: JSON.stringify(body) } : {});
  const first = BigInt(trace.first), last = BigInt(trace.last), rows = trace.rows.map((r) => [r.id, 0, r.lines]);
  let differing = 0;
  for (let i = 0; i < 60; i++) {
    const span = (last - first) / BigInt(1 + Math.floor(next() * (i % 2 ? 3 : 400))) + 50n, from = first + BigInt(Math.floor(next() * Number(last - first)));
    const ask = { from: String(from), to: String(from + span), width: 10 + Math.floor(next() * 500), left: -Math.floor(next() * 50), right: 60, rows };
    const online = new Uint8Array(await (await fetch(`${viewer.origin}/api/window`, { method: 'POST', headers: { 'X-Stave-Token': viewer.token }, body: JSON.stringify(ask) })).arrayBuffer());
    const other = new Uint8Array(await (await offline('/api/window', ask)).arrayBuffer());
    differing += !sameLines(online, other);
  }
  same('windows_are_those_of_the_server', differing, 0);
  const bare = ({ id, track, ...rest }) => rest;
  let wrong = 0;
  for (let i = 0; i < trace.slices; i += 13) wrong += JSON.stringify(sorted(bare(await viewer.api(`/api/slice?slice=${i}`)))) !== JSON.stringify(sorted(bare(await (await offline(`/api/slice?slice=${i}`)).json())));
  same('slices_are_those_of_the_server', wrong, 0);
  for (const path of ['/api/near?slice=20&to=next&by=name', '/api/near?slice=20&to=previous&by=row']) same(path, await (await offline(path)).json(), await viewer.api(path));
  for (const ask of [{ text: 'OP', limit: 9 }, { text: 'op ?', limit: 3 }, { text: 'op', slice: 20, to: 'next' }, { text: 'op', slice: 20, to: 'previous' }, { text: 'request', at: '3000000' }]) {
    same(`search_${JSON.stringify(ask)}`, sorted(await (await offline('/api/search', ask)).json()), sorted(await viewer.api('/api/search', ask)));
  }
  const area = { from: String(first + 100n), to: String(first + 5000000n), rows }, a = await viewer.api('/api/area', area), b = await (await offline('/api/area', area)).json();
  same('areas_have_the_same_slices', b.slices, a.slices);
  const plain = (list) => list.map(({ colour, ...rest }) => sorted(rest)).sort((x, y) => x.name - y.name);
  same('areas_have_the_same_table', plain(b.names), plain(a.names));
} finally {
  await viewer.stop();
}

/** Names come in another order. */
function sameLines(a, b) {
  const skip = (bytes) => {
    let at = 4;
    const v = () => { let n = 0, f = 1, x; do { x = bytes[at++]; n += (x & 127) * f; f *= 128; } while (x > 127); return n; };
    for (let n = v(); n > 0; n--) { v(); const length = v(); at += length; }
    return bytes.slice(at);
  };
  return Buffer.compare(Buffer.from(skip(a)), Buffer.from(skip(b))) === 0;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
process.exit(process.exitCode || 0);
