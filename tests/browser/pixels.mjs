// pick() against SQL and against the list that the trace was made from; outliers at every zoom.
import fs from 'node:fs';
import { check, clean, open, random, run, same, stamp } from './harness.mjs';

const BASE = 1700000000000000000n; // as large as real clocks, beyond what a double holds exactly
const FLAT = 120000;

/** Rows: one of short slices with planted longer ones, a nest, overlaps, unfinished slices and instants. */
function makeTrace(file) {
  const next = random(7), flat = [], lines = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="made"'];
  const at = (ns) => stamp(BASE + ns);
  for (let i = 2; i <= 6; i++) lines.push(`track #${i} thread uuid=0x${i} parent=#1 pid=7 tid=${i} name="${['flat', 'nest', 'over', 'odd', 'lone'][i - 2]}"`);
  const events = [];
  let t = 0n;
  for (let i = 0; i < FLAT; i++) {
    const outlier = i % 30011 === 15000, dur = outlier ? 1000n : BigInt(20 + Math.floor(next() * 60));
    flat.push({ ts: BASE + t, dur, name: outlier ? 'outlier' : `s${i % 50}` });
    events.push([t, `slice #2 "${flat[i].name}" dur=${stamp(dur)}`]);
    t += dur + (next() < 0.02 ? BigInt(Math.floor(next() * 40000)) : BigInt(Math.floor(next() * 3)));
  }
  const end = t;
  for (let u = 0n; u < end; u += end / 600n) {
    const dur = end / 700n;
    events.push([u, `slice #3 "outer" dur=${stamp(dur)}`], [u + dur / 8n, `slice #3 "inner" dur=${stamp(dur / 2n)}`], [u + dur / 6n, `slice #3 "deep" dur=${stamp(dur / 9n)}`]);
    events.push([u, `slice #4 "long" dur=${stamp(dur * 3n)}`], [u + dur / 3n, 'instant #5 "tick"']);
  }
  events.push([end / 5n, 'slice #6 "lone" dur=0.000000001'], [end / 4n, 'slice #6 "lone" dur=0.000000100']);
  events.push([end / 3n, 'begin #5 "never ended"'], [end / 2n, 'begin #5 "nor this"']);
  events.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, lines.concat(events.map(([ns, text]) => `${at(ns)} ${text}`)).join('\n') + '\n');
  return { flat, end: BASE + end };
}

/** How many of the list touch [from, to), and the longest of them. */
function truth(flat, from, to) {
  let low = 0, high = flat.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const s = flat[middle];
    if (s.ts < from && s.ts + s.dur <= from) low = middle + 1; else high = middle;
  }
  let count = 0, longest = null;
  for (let i = low; i < flat.length && flat[i].ts < to; i++) {
    count++;
    if (!longest || flat[i].dur > longest.dur) longest = flat[i];
  }
  return { count, longest };
}

async function probe(viewer, page, made, next, tally) {
  const state = await page.state();
  for (let i = 0; i < 12; i++) {
    const row = i % 2 ? state.rows[Math.floor(next() * state.rows.length)] : state.rows.find((r) => r.name === 'flat');
    const x = Math.floor(next() * state.width), y = row.top + next() * (row.bottom - row.top);
    const found = await page.eval((a, b) => window.stave.pick(a, b), x, y);
    if (!found) continue;
    const counted = Number((await viewer.sql(found.sql))[0][0]);
    tally.probes++;
    if (found.count > 1) tally.shared++;
    if (counted !== found.count) tally.wrong.push({ found, counted });
    const edge = (k) => BigInt(state.from) + BigInt(k) * (BigInt(state.to) - BigInt(state.from)) / BigInt(state.width);
    if (found.from !== edge(x).toString() || found.to !== edge(x + 1).toString()) tally.edges.push({ x, found });
    if (row.name !== 'flat') continue;
    const { count, longest } = truth(made.flat, BigInt(found.from), BigInt(found.to));
    tally.flat++;
    if (count !== found.count || (longest && longest.dur.toString() !== found.dur) || (count === 1 && longest.name !== found.name)) tally.untrue.push({ found, count, name: longest && longest.name });
  }
}

/** The window about an outlier at one zoom: is it the name of its pixel, and is that pixel drawn? */
async function outlierAt(page, outlier, width) {
  const from = outlier.ts - width / 3n;
  await page.eval((a, b) => window.stave.go(a, b), from.toString(), (from + width).toString());
  await page.idle();
  return page.eval((ts) => {
    const state = window.stave.state(), row = state.rows.find((r) => r.name === 'flat');
    const x = Number((BigInt(ts) - BigInt(state.from)) * BigInt(state.width) / (BigInt(state.to) - BigInt(state.from)));
    const canvas = document.querySelector('[data-testid=timeline]'), y = row.y + row.height / 2;
    const at = (px, py) => [...canvas.getContext('2d').getImageData(px, py, 1, 1).data].join();
    const found = [x - 1, x, x + 1].map((px) => ({ px, ...window.stave.pick(px, y) })).find((f) => f.name === 'outlier');
    return { found, drawn: found ? at(found.px, y) !== '255,255,255,255' : false, width: state.width };
  }, outlier.ts.toString());
}

/** Pixels of the screen that are touched and look like the background, or the other way round. */
function undrawn(page) {
  return page.eval(() => {
    const state = window.stave.state(), canvas = document.querySelector('[data-testid=timeline]'), pen = canvas.getContext('2d'), wrong = [];
    const ground = new Set([...pen.getImageData(0, state.rows[0].y + state.rows[0].height - 2, state.width, 1).data].join().match(/\d+,\d+,\d+,\d+/g));
    let touched = 0;
    for (const row of state.rows) {
      for (let line = 0; line < row.depth; line++) {
        const y = row.y + 3 + line * 18 + 2, data = pen.getImageData(0, y, state.width, 1).data;
        for (let x = 0; x < state.width; x++) {
          const drawn = !ground.has([...data.subarray(4 * x, 4 * x + 4)].join()), { count } = window.stave.pick(x, y);
          if (count > 0) touched++;
          if (drawn !== count > 0) wrong.push({ row: row.name, line, x, count });
        }
      }
    }
    return { touched, grounds: ground.size, wrong: wrong.slice(0, 5) };
  });
}

/** More names on screen than one reply lists and than one request for names may ask for. */
async function manyNames(browser, start, tmp) {
  const file = `${tmp}/names.txt`, lines = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="p"'];
  for (let k = 0; k < 14; k++) lines.push(`track #${k + 2} thread uuid=0x${(k + 2).toString(16)} parent=#1 pid=7 tid=${k + 7} name="t${k}"`);
  for (let i = 0; i < 28000; i++) lines.push(`${stamp(BASE + BigInt(i) * 1000n)} slice #${i % 14 + 2} "name ${i}" dur=0.000008000`);
  fs.writeFileSync(file, lines.join('\n') + '\n');
  const viewer = await start(file), page = await open(browser, viewer.url);
  const { picked, unnamed } = await page.eval(() => {
    const s = window.stave.state(), all = s.rows.flatMap((r) => [...Array(s.width).keys()].map((x) => window.stave.pick(x, r.y + 10))).filter((p) => p.count > 0);
    return { picked: new Set(all.map((p) => p.slice)).size, unnamed: all.filter((p) => !/^name \d+$/.test(p.name)).length };
  });
  check('many_names_are_on_screen', picked > 14100, picked);
  same('all_names_are_known_when_idle', unnamed, 0);
}

/** 1 µs slices among ten million shorter ones: each is the name of its pixel from the whole trace down to itself. */
async function tenMillion(browser, start, tmp) {
  const file = `${tmp}/large.txt`, out = fs.openSync(file, 'w'), next = random(11), outliers = [];
  fs.writeSync(out, '# stave text 1\nclock boottime\ntrack #1 process uuid=0x1 pid=7 name="made"\ntrack #2 thread uuid=0x2 parent=#1 pid=7 tid=2 name="flat"\n');
  let t = 0, lines = [];
  for (let i = 0; i < 10000000; i++) {
    const planted = i % 999983 === 500000, dur = planted ? 1000 : 20 + Math.floor(next() * 60);
    if (planted) outliers.push({ ts: BASE + BigInt(t) });
    lines.push(`${stamp(BASE + BigInt(t))} slice #2 "${planted ? 'outlier' : `s${i % 50}`}" dur=${stamp(BigInt(dur))}\n`);
    t += dur + Math.floor(next() * 3);
    if (lines.length === 100000) { fs.writeSync(out, lines.join('')); lines = []; }
  }
  fs.writeSync(out, lines.join(''));
  fs.closeSync(out);
  const viewer = await start(file), page = await open(browser, viewer.url), lost = [];
  let tried = 0;
  for (const outlier of outliers) {
    for (let width = BigInt(t); width > 3000n; width /= 5n) {
      const seen = await outlierAt(page, outlier, width);
      tried++;
      if (!seen.found || seen.found.dur !== '1000' || !seen.drawn) lost.push({ width: width.toString(), seen });
    }
  }
  check('outliers_among_ten_million_were_looked_for', outliers.length === 10 && tried > 70, tried);
  same('none_of_them_disappears_at_any_zoom', lost.slice(0, 3), []);
}

await run(async ({ browser, start, tmp }) => {
  if (process.env.STAVE_LONG) await tenMillion(browser, start, tmp);
  const file = `${tmp}/made.txt`, made = makeTrace(file), viewer = await start(file), page = await open(browser, viewer.url), next = random(99);
  const state = await page.state();
  same('all_rows_are_there', state.rows.map((r) => r.name).sort(), ['flat', 'lone', 'nest', 'odd', 'over']);
  check('times_are_exact', state.first === BASE.toString(), state.first);

  const tally = { probes: 0, shared: 0, flat: 0, wrong: [], edges: [], untrue: [] };
  await probe(viewer, page, made, next, tally);
  const seen = [await undrawn(page)];
  const whole = BigInt(state.last) - BigInt(state.first);
  for (let i = 0; i < 14; i++) {
    const span = BigInt(Math.floor(Number(whole) ** (0.35 + 0.65 * next()))), from = BigInt(state.first) + BigInt(Math.floor(next() * Number(whole - span)));
    await page.eval((a, b) => window.stave.go(a, b), from.toString(), (from + span).toString());
    await page.idle();
    await probe(viewer, page, made, next, tally);
    seen.push(await undrawn(page));
  }
  check('many_pixels_were_looked_at', seen.every((s) => s.grounds <= 2) && seen.reduce((sum, s) => sum + s.touched, 0) > 20000, seen);
  same('what_touches_a_pixel_is_drawn_and_nothing_else', seen.flatMap((s) => s.wrong).slice(0, 5), []);
  check('many_pixels_were_probed', tally.probes > 100 && tally.shared > 10 && tally.flat > 50, tally);
  same('counts_equal_sql', tally.wrong.slice(0, 3), []);
  same('pixels_are_exact_intervals', tally.edges.slice(0, 3), []);
  same('counts_names_and_durations_equal_the_trace', tally.untrue.slice(0, 3), []);

  const outliers = made.flat.filter((s) => s.name === 'outlier'), lost = [];
  let tried = 0;
  for (const outlier of outliers.slice(0, 2)) {
    for (let width = whole; width > 3000n; width /= 5n) {
      const seen = await outlierAt(page, outlier, width);
      tried++;
      if (!seen.found || seen.found.dur !== '1000' || !seen.drawn) lost.push({ width: width.toString(), seen });
    }
  }
  check('outliers_were_looked_for', outliers.length >= 3 && tried >= 8, tried);
  same('outliers_are_visible_at_every_zoom', lost.slice(0, 3), []);
  await clean('pixels', page, viewer.origin);
  await manyNames(browser, start, tmp);
});
