// The order of rows, what is gathered and folded, the width of the names, empty time at the ends: driven by real input, compared with SQL.
import fs from 'node:fs';
import { execFileSync } from 'node:child_process';
import { check, clean, open, random, run, same, stamp } from './harness.mjs';
import { makeWaits } from './made.mjs';

const LONG = 'a name of a server that is much too long for its column number 17';

/** A server with a device, its main thread, loaders and 40 requests at once; 30 processes that do nothing; counters of the machine; all in the last tenth of the time. */
function makeBusy(file) {
  const next = random(5), lines = [], at = (ns, text) => lines.push([BigInt(Math.round(ns)), text]);
  const head = ['# stave text 1', 'clock boottime', `track #1 process uuid=0x1 pid=700 name="${LONG}"`,
    'track #2 thread uuid=0x2 parent=#1 pid=700 tid=702 name="loader 10"', 'track #3 thread uuid=0x3 parent=#1 pid=700 tid=703 name="loader 9"',
    'track #4 thread uuid=0x4 parent=#1 pid=700 tid=700', 'track #5 thread uuid=0x5 parent=#1 pid=700 tid=704',
    'track #6 gpu uuid=0x6 parent=#1 pid=700 name="GPU 0"', 'track #7 stream uuid=0x7 parent=#6 pid=700 name="Stream 7"', 'track #8 custom uuid=0x8 parent=#5 name="state"'];
  for (let i = 0; i < 40; i++) head.push(`track #${10 + i} async uuid=${0x1000 + i} parent=#1 name="request"`);
  for (let i = 0; i < 30; i++) head.push(`track #${60 + 2 * i} process uuid=${0x2000 + i} pid=${800 + i} name="sh"`, `track #${61 + 2 * i} thread uuid=${0x3000 + i} parent=#${60 + 2 * i} pid=${800 + i} tid=${800 + i}`);
  ['CPU', 'Disks', 'Network'].forEach((name, i) => head.push(`track #${130 + 2 * i} custom uuid=${0x4000 + i} name="${name}"`, `track #${131 + 2 * i} counter uuid=${0x5000 + i} parent=#${130 + 2 * i} name="use" unit="%"`));
  at(0, 'instant #4 "begin"');
  const first = 9e9;
  for (let i = 0; i < 2000; i++) {
    at(first + i * 5e5, `slice #4 "step" cat="app" dur=${stamp(450000n)}`);
    if (i % 2) at(first + i * 5e5, `slice #7 "gemm" cat="kernel" dur=${stamp(90000n)}`);
    if (i % 4 === 0) at(first + i * 5e5, `slice #2 "read" cat="app" dur=${stamp(300000n)}`);
    if (i % 8 === 0) at(first + i * 5e5, `slice #3 "read" cat="app" dur=${stamp(30000n)}`);
  }
  at(first, `slice #8 "Sleeping" cat="thread_state" dur=${stamp(900000000n)}`);
  for (let lane = 0; lane < 40; lane++) {
    for (let t = first + lane * 1e7; t < first + 9e8; t += 9e7) at(t, `slice #${10 + lane} "request" cat="request" dur=${stamp(BigInt(Math.round(2e7 + next() * 6e7)))}`);
  }
  for (let i = 0; i < 30; i++) at(first + i * 1e6, `slice #${61 + 2 * i} "exec" cat="app" dur=0.000000100`);
  for (let i = 0; i < 3; i++) for (let k = 0; k < 9; k++) at(first + k * 1e8, `counter #${131 + 2 * i} {${k * i}}`);
  lines.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, head.concat(lines.map(([t, text]) => `${stamp(t)} ${text}`)).join('\n') + '\n');
}

/** A server of 64 request lanes, each with a phase below it, as libstave-serving writes them; two threads of one name. */
function makeLanes(file) {
  const next = random(9), lines = [], head = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="server"', 'track #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="main"'];
  for (const tid of [8, 9]) head.push(`track #${tid - 5} thread uuid=0x${tid} parent=#1 pid=7 tid=${tid} name="worker"`);
  for (let i = 0; i < 64; i++) head.push(`track #${10 + i} custom uuid=0x${(0x100 + i).toString(16)} parent=#1 name="requests ${i + 1}"`);
  const at = (ns, text) => lines.push([BigInt(Math.round(ns)), text]);
  for (let i = 0; i < 64; i++) {
    for (let t = i * 3e6; t < 9e8; t += 1e8 + next() * 2e8) {
      const dur = 2e7 + next() * 7e7;
      at(t, `slice #${10 + i} "request" cat="serving" dur=${stamp(BigInt(Math.round(dur)))} {request=${lines.length}}`);
      at(t + 1e6, `slice #${10 + i} "run" cat="serving" dur=${stamp(BigInt(Math.round(dur / 2)))}`);
    }
  }
  for (let t = 0; t < 9e8; t += 1e7) for (const track of [2, 3, 4]) at(t, `slice #${track} "work" dur=0.004000000`);
  lines.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, head.concat(lines.map(([t, text]) => `${stamp(t)} ${text}`)).join('\n') + '\n');
}

const labels = (page) => page.eval(() => [...document.querySelectorAll('.name')].filter((n) => !n.style.transform.includes('-200')).sort((a, b) => parseFloat(a.style.transform.slice(11)) - parseFloat(b.style.transform.slice(11))).map((n) => n.querySelector('.label').textContent));
const foldOf = (page, name) => page.eval((wanted) => [...document.querySelectorAll('.name')].find((n) => n.querySelector('.label').textContent === wanted).querySelector('.fold').click(), name);

/** 64 lanes are one row that shows how many there are at once, until it is unfolded. */
async function lanes(browser, start, tmp) {
  const file = `${tmp}/lanes.txt`;
  makeLanes(file);
  const viewer = await start(file), page = await open(browser, viewer.url), box = await page.box('[data-testid=timeline]');
  const shown = await labels(page);
  check('lanes_are_one_row', shown.includes('requests (64)') && !shown.some((name) => /^requests \d/.test(name)), shown);
  same('threads_of_one_name_have_their_numbers', shown.filter((name) => name.startsWith('worker')), ['worker 8', 'worker 9']);
  const row = (await page.state()).rows.find((r) => r.name === 'requests (64)');
  for (const part of [0.2, 0.5, 0.8]) {
    const x = Math.round(box.width * part), now = await page.state(), span = BigInt(now.to) - BigInt(now.from), wide = BigInt(Math.round(box.width));
    const from = BigInt(now.from) + span * BigInt(x) / wide, to = BigInt(now.from) + span * BigInt(x + 1) / wide;
    await page.mouse('mouseMoved', box.x + x + 0.5, box.y + row.y + 20);
    await page.until(() => / at once/.test(document.getElementById('tooltip').textContent));
    await page.idle();
    const said = parseFloat(await page.eval(() => document.querySelector('#tooltip .head').textContent));
    const [[real]] = await viewer.sql(`select sum(min(ts + dur, ${to}) - max(ts, ${from})) * 1.0 / ${to - from} from slice where name = 'request' and ts < ${to} and ts + dur > ${from}`);
    check(`lanes_at_once_at_${part}_are_sqls`, Math.abs(said - Number(real)) < 0.35, `${said} instead of ${real}`);
  }
  check('their_number_is_drawn', await page.eval((y) => { const c = document.querySelector('[data-testid=timeline]'), at = c.getContext('2d').getImageData(c.width >> 1, y, 1, 40).data; return new Set(Array.from({ length: 40 }, (_, i) => at.slice(4 * i, 4 * i + 3).join())).size > 2; }, row.y + 2));
  await page.drag(box.x + box.width * 0.3, box.y + row.y + 5, box.x + box.width * 0.4, box.y + row.y + 20);
  await page.idle();
  same('an_area_on_it_has_all_lanes', (await page.state()).selection.rows.length, 64);
  await page.press('Escape');
  await foldOf(page, 'requests (64)');
  await page.idle();
  const unfolded = await labels(page);
  check('the_lanes_unfold', ['requests 1', 'requests 2', 'requests 10'].every((name) => unfolded.includes(name)), unfolded);
  await foldOf(page, 'requests (64)');
  await page.idle();
  const [[id, at]] = await viewer.sql("select id, view_row from slice where name = 'run' order by dur desc limit 1");
  await page.eval(async (one) => { const answer = await (await fetch(`/api/slice?id=${one}`, { headers: { 'X-Stave-Token': sessionStorage.getItem('stave.token') } })).json(); location.hash = `#slice=${answer.slice}`; }, id);
  await page.until((one) => window.stave.state().selection?.id === one, id);
  await page.press('f');
  await page.idle();
  check('a_slice_of_a_lane_is_found_there', (await page.state()).rows.some((r) => r.id === Number(at)), at);
  await clean('lanes', page, viewer.origin);
}

/** More than two million slices: the findings are looked for after the first picture, and their rows come first then, too. */
async function many(browser, start, tmp) {
  const small = `${tmp}/few.txt`, file = `${tmp}/many.txt`;
  makeWaits(small);
  const lines = fs.readFileSync(small, 'utf8').trimEnd().split('\n'), first = lines.findIndex((l) => /^\d/.test(l)), tracks = [];
  for (let i = 0; i < 3; i++) tracks.push(`track #${50 + 2 * i} process uuid=0x${50 + 2 * i} pid=${50 + i} name="busy"`, `track #${51 + 2 * i} thread uuid=0x${51 + 2 * i} parent=#${50 + 2 * i} pid=${50 + i} tid=${50 + i}`);
  const out = fs.openSync(file, 'w'), [from] = lines[first].split(' ');
  fs.writeSync(out, [...lines.slice(0, first), ...tracks, ''].join('\n'));
  for (let part = 0; part < 210; part++) {
    let text = '';
    for (let i = 0; i < 10000; i++) text += `${from} slice #${51 + 2 * (i % 3)} "x" dur=0.000000000\n`;
    fs.writeSync(out, text);
  }
  fs.writeSync(out, `${lines.slice(first).join('\n')}\n`);
  fs.closeSync(out);
  const viewer = await start(file), page = await open(browser, viewer.url);
  const said = () => page.eval(() => document.querySelector('#why span').textContent), asked = await said();
  check('it_says_that_it_looks', asked.startsWith('Looking for it: '), asked);
  const { findings } = JSON.parse(execFileSync(process.env.STAVE, ['explain', small, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  await page.until(() => !document.querySelector('#why span').textContent.startsWith('Looking'));
  same('and_then_what_it_found', await said(), findings[0].sentence);
  const { rows } = await viewer.api('/api/trace');
  await page.until((ids) => ids.includes(window.stave.state().rows.find((r) => r.name)?.id), rows.filter((r) => r.tid === String(findings[0].culprit.tid)).map((r) => r.id));
  check('the_row_of_the_culprit_comes_first', true);
  await clean('many', page, viewer.origin);
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/busy.txt`;
  makeBusy(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  const state = await page.state();
  const wanted = [`${LONG} (pid 700)`, 'Stream 7', 'main thread 700', 'request (40)', 'loader 9', 'loader 10', 'thread 704 · state', 'The machine (3 groups)'];
  const shown = await labels(page);
  same('rows_come_in_order', wanted.filter((name) => shown.includes(name)), wanted);
  same('in_this_order', shown.filter((name) => wanted.includes(name)), wanted);
  check('what_does_nothing_is_one_group', shown.includes('30 others') && !shown.some((name) => name.startsWith('sh')), shown);
  // empty time
  const [[first, last]] = await viewer.sql("select min(ts), max(ts + dur) from slice where name = 'step'");
  check('the_empty_beginning_is_left_out', BigInt(state.from) > BigInt(first) - 400000000n && BigInt(state.to) >= BigInt(last), [state.from, first]);
  await page.press('0');
  await page.idle();
  const all = await page.state();
  same('0_shows_everything_from_0_on', all.from, state.first);
  // how many at once, as SQL says it
  const row = all.rows.find((r) => r.name === 'request (40)'), box = await page.box('[data-testid=timeline]');
  await page.eval(() => [...document.querySelectorAll('.badge')].find((b) => b.textContent.includes('outside')).click());
  await page.idle();
  for (const part of [0.3, 0.5, 0.7]) {
    const x = Math.round(box.width * part), now = await page.state(), span = BigInt(now.to) - BigInt(now.from), wide = BigInt(Math.round(box.width));
    const from = BigInt(now.from) + span * BigInt(x) / wide, to = BigInt(now.from) + span * BigInt(x + 1) / wide;
    await page.mouse('mouseMoved', box.x + x + 0.5, box.y + row.y + 20);
    await page.until(() => / at once/.test(document.getElementById('tooltip').textContent));
    const said = parseFloat(await page.eval(() => document.querySelector('#tooltip .head').textContent));
    const [[real]] = await viewer.sql(`select sum(min(ts + dur, ${to}) - max(ts, ${from})) * 1.0 / ${to - from} from slice where name = 'request' and ts < ${to} and ts + dur > ${from}`);
    check(`at_once_at_${part}_is_sqls`, Math.abs(said - Number(real)) < 0.35, `${said} instead of ${real}`);
  }
  // unfolded by a click: forty lines
  const height = async () => (await page.state()).rows.find((r) => r.name === 'request (40)').height;
  const folded = await height();
  await foldOf(page, 'request (40)');
  await page.idle();
  check('it_unfolds', await height() > 5 * folded, [folded, await height()]);
  // a chart for each counter of an area: one that rises from 0 to its greatest value
  await page.press('a', 'ctrl');
  await page.until(() => document.querySelector('[data-testid=area-tab-counters]'));
  await page.clickOn('[data-testid=area-tab-counters]');
  await page.idle();
  const charts = await page.eval(() => [...document.querySelectorAll('[data-testid=area-counters] .chart')].map((c) => { const at = (x, y) => c.getContext('2d').getImageData(x, y, 1, 1).data[3]; return [at(c.width - 1, 0) > 0, at(0, 0) === 0 && at(c.width >> 1, 0) === 0]; }));
  same('counters_of_an_area_have_charts', charts.length, 3);
  check('which_rise_to_the_right', charts.some(([high, low]) => high && low), charts);
  await page.press('Escape');
  await page.press('Escape');
  await page.idle();
  // the width of the names
  const grip = await page.box('#names-grip'), wide = async () => (await page.box('#names')).width, before = await wide();
  same('a_name_keeps_its_end', await page.eval(() => document.querySelector('.name.group .tail').textContent), ' 17 (pid 700)');
  await page.drag(grip.x + 3, grip.y + 200, grip.x + 153, grip.y + 200);
  same('the_names_are_widened', await wide(), before + 150);
  await page.reload();
  await page.until(() => window.stave && document.querySelector('.name'));
  same('and_stay_so', await wide(), before + 150);
  await clean('rows', page, viewer.origin);
  // what the findings are about comes first
  const waits = `${tmp}/waits.txt`;
  makeWaits(waits);
  const { findings } = JSON.parse(execFileSync(process.env.STAVE, ['explain', waits, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  const ofWaits = await start(waits), other = await open(browser, ofWaits.url), { rows } = await ofWaits.api('/api/trace');
  const { tid } = findings[0].culprit, names = (ids) => ids.map((id) => rows[id].tid).filter(Boolean);
  check('the_finding_names_a_thread_that_is_not_the_first', rows.length > 2 && String(tid) !== names(rows.map((r) => r.id))[0], findings[0].culprit);
  const shownRows = (await other.state()).rows.map((r) => r.id);
  same('its_row_comes_first', names(shownRows)[0], String(tid));
  const [, second] = rows.filter((r) => r.depth === 0 && r.lines), order = (await ofWaits.api('/api/order', { rows: [[second.id, 0, 0]] })).rows;
  same('all_rows_are_there', [...order].sort((a, b) => a - b), rows.map((r) => r.id));
  same('an_order_begins_with_what_was_asked_for', order[0], second.id);
  const { rows: busy, groups: busyGroups } = await viewer.api('/api/trace'), atEnd = ({ group }) => ['machine', 'other'].indexOf(busyGroups.find((g) => g.id === group).gather), ten = busy.find((r) => r.name === 'loader 10'), wish = (await viewer.api('/api/order', { rows: [[ten.id, 0, 0]] })).rows;
  same('also_within_its_group', wish, [ten.id, ...[...busy].sort((a, b) => atEnd(a) - atEnd(b)).map((r) => r.id).filter((id) => id !== ten.id)]);
  const idler = busy.find((r) => atEnd(r) === 1), named = await viewer.api('/api/order', { rows: [[idler.id, 0, 0]] });
  check('whom_a_finding_names_is_not_among_the_others', named.rows[0] === idler.id && !named.gather.other.includes(idler.group) && named.gather.other.length === 29, named.gather);
  const groups = order.map((id) => rows[id].group);
  check('groups_stay_together', groups.every((g, i) => i === 0 || g === groups[i - 1] || !groups.slice(0, i).includes(g)), groups);
  same('without_wishes_it_is_that_of_the_trace', (await ofWaits.api('/api/order', { rows: [] })).rows, rows.map((r) => r.id));
  await clean('findings', other, ofWaits.origin);
  await lanes(browser, start, tmp);
  if (process.env.STAVE_LONG) await many(browser, start, tmp);
});
