// Counter values that no scale has a place for: NaN is drawn over the whole height, an infinity at the edge that it lies beyond, also in the exported page, and the numbers are those of the others.
import fs from 'node:fs';
import { spawnSync } from 'node:child_process';
import { check, clean, open, run, same, stamp } from './harness.mjs';

const { STAVE } = process.env;
const S = 1000000000n, BASE = 1700000000n * S;
const VALUES = ['1.0', 'nan', 'inf', '-inf', '2.0'];

/** Each value holds for two seconds; another counter has no number at all. */
function makeTrace(file) {
  const lines = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="made"', 'track #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="main"', 'track #3 counter uuid=0x3 parent=#1 name="loss"', 'track #4 counter uuid=0x4 parent=#1 name="never"'];
  lines.push(`${stamp(BASE)} slice #2 "all" dur=${stamp(2n * S * BigInt(VALUES.length))}`);
  VALUES.forEach((value, i) => lines.push(`${stamp(BASE + 2n * S * BigInt(i))} counter #3 {${value}}`, `${stamp(BASE + 2n * S * BigInt(i))} counter #4 {nan}`));
  fs.writeFileSync(file, lines.join('\n') + '\n');
}

/** In the middle of each value: how much of the row's height has the colour of odd values, and where that begins and ends (0: top, 1: bottom). */
function columns(page, name, n) {
  return page.eval((base, wanted, count) => {
    const state = window.stave.state(), row = state.rows.find((r) => r.name === wanted), canvas = document.querySelector('[data-testid=timeline]'), pen = canvas.getContext('2d');
    return [...Array(count).keys()].map((i) => {
      const at = BigInt(base) + BigInt(2 * i + 1) * 1000000000n, x = Number((at - BigInt(state.from)) * BigInt(state.width) / (BigInt(state.to) - BigInt(state.from)));
      const data = pen.getImageData(x, row.y, 1, row.height).data, odd = [...Array(row.height).keys()].filter((y) => data[4 * y] === 0xc0 && data[4 * y + 1] === 0x39 && data[4 * y + 2] === 0x2b);
      return odd.length ? { part: odd.length / row.height, from: odd[0] / row.height, to: (odd[odd.length - 1] + 1) / row.height } : null;
    });
  }, BASE.toString(), name, n);
}

const isWhole = (c) => c !== null && c.part > 0.8;
const isTop = (c) => c !== null && c.part < 0.4 && c.from < 0.2;
const isBottom = (c) => c !== null && c.part < 0.4 && c.to > 0.8;

async function drawn(name, page) {
  const [one, nan, inf, minus, two] = await columns(page, 'loss', VALUES.length), never = await columns(page, 'never', VALUES.length);
  check(`${name}_nan_over_the_whole_height`, isWhole(nan), nan);
  check(`${name}_infinity_at_the_top`, isTop(inf), inf);
  check(`${name}_minus_infinity_at_the_bottom`, isBottom(minus), minus);
  check(`${name}_only_nan_over_the_whole_height`, never.every(isWhole), never);
  same(`${name}_numbers_are_no_odd_values`, [one, two], [null, null]);
}

/** The server's counts are texts: they may be beyond what a double holds. */
const numbers = (answer) => answer.counters.map((c) => ({ ...c, not_finite: Number(c.not_finite) }));

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/odd.txt`, html = `${tmp}/odd.html`;
  makeTrace(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await drawn('page', page);
  const whole = { from: BASE.toString(), to: (BASE + 10n * S).toString(), rows: [[1, 0, 0], [2, 0, 0]] }, counters = numbers(await viewer.api('/api/area', whole));
  same('server_counts_them', counters, [{ row: 1, min: 1, max: 2, mean: 1.5, last: 2, not_finite: 3 }, { row: 2, min: 'NaN', max: 'NaN', mean: 'NaN', last: 'NaN', not_finite: 5 }]);
  await clean('page', page, viewer.origin);
  const made = spawnSync(STAVE, ['view', '--export', html, file], { encoding: 'utf8' });
  same('it_is_exported', [made.status, made.stdout], [0, '']);
  const offline = await browser.page();
  await offline.goto(`file://${html}`);
  await offline.until(() => Boolean(window.stave)); // the trace is unpacked first
  await offline.idle();
  await drawn('offline', offline);
  const answer = await offline.eval(async (ask) => (await window.fetch('/api/area', { method: 'POST', body: JSON.stringify(ask) })).json(), whole);
  same('offline_counts_them', numbers(answer), counters);
  same('offline_no_errors', offline.errors, []);
});
