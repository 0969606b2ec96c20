// The selected area by kinds, its edges, rows of queries: driven by real input, compared with SQL.
import fs from 'node:fs';
import { check, clean, open, run, same, stamp } from './harness.mjs';

const US = 1000n, BASE = 1711964651000000123n; // no double holds these times

/** A thread with phases that launch work of another, its states, samples of its stack, two counters. */
function makeKinds(file) {
  const events = [], at = (us, text) => events.push([BASE + BigInt(us) * US, text]);
  const head = ['# stave text 1', 'clock boottime', 'meta "sample_hz" "1000"', 'track #1 process uuid=0x1 pid=7 name="train"', 'track #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="main"',
    'track #3 custom uuid=0x3 parent=#2 name="state"', 'track #4 custom uuid=0x4 parent=#2 name="samples"', 'track #5 thread uuid=0x5 parent=#1 pid=7 tid=8 name="worker"',
    'track #6 counter uuid=0x6 parent=#1 name="loss"', 'track #7 counter uuid=0x7 parent=#1 name="odd"'];
  for (let i = 0; i < 60; i++) {
    const t = i * 1000;
    at(t, `slice #2 "step" dur=${stamp(900n * US)}`);
    at(t + 50, `slice #2 "launch" dur=${stamp(20n * US)} {@flow_begin:0x${(i + 1).toString(16)}}`);
    at(t + 100 + i, `slice #5 "work" dur=${stamp(300n * US)} {@flow_end:0x${(i + 1).toString(16)}}`);
    at(t, `slice #3 "Running" cat="thread_state" dur=${stamp(BigInt(600 + i) * US)}`);
    at(t + 600 + i, `slice #3 "Sleeping" cat="thread_state" dur=${stamp(BigInt(400 - i) * US)}`);
    at(t + 500, `instant #4 "sample" cat="cpu_sample" {@stack["main" "${i % 3 ? 'forward' : 'backward'}" "gemm"]}`);
    at(t, `counter #6 {${60 - i}}`);
    at(t, `counter #7 {${i % 7}}`);
  }
  events.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, head.concat(events.map(([ns, text]) => `${stamp(ns)} ${text}`)).join('\n') + '\n');
}

const table = (page, id) => page.eval((testid) => [...document.querySelectorAll(`[data-testid=${testid}] tbody tr:not(.spacer)`)].map((tr) => [...tr.children].map((td) => td.textContent)), id);

/** The selected area, when its answer is there. */
async function settled(page) {
  await page.idle();
  const { from, to } = (await page.state()).selection;
  return { from, to };
}

async function tabs(page, viewer, { from, to }) {
  const inside = `ts < ${to} and (ts >= ${from} or ts + dur > ${from})`, part = `min(ts + dur, ${to}) - max(ts, ${from})`;
  const kinds = await page.eval(() => [...document.querySelectorAll('[data-testid^=area-tab-]')].map((b) => b.dataset.testid.slice(9)));
  same('each_kind_has_a_tab', kinds, ['slices', 'states', 'samples', 'counters', 'flows']);
  const titles = await page.eval(() => [...document.querySelectorAll('[data-testid^=area-tab-]')].map((b) => b.textContent));
  const one = async (sql) => (await viewer.sql(sql))[0][0];
  const wanted = [`Slices ${await one(`select count(*) from slice where ${inside} and category is null`)}`, `States ${await one(`select count(*) from slice where ${inside} and category = 'thread_state'`)}`,
    `Samples ${await one(`select count(*) from slice where ${inside} and category = 'cpu_sample'`)}`, 'Counters 2'];
  same('with_the_numbers_of_sql', titles.slice(0, 4), wanted);
  const slices = await viewer.sql(`select name, count(*), sum(${part}) from slice where ${inside} and category is null group by name order by 3 desc`);
  same('slices_are_sqls', (await table(page, 'area-table')).map((r) => r.slice(0, 2)), slices.map(([name, n]) => [name, n]));
  check('their_flame_graph_is_beside_them', await page.eval(() => document.querySelector('.flame canvas').getBoundingClientRect().width > 100));

  await page.clickOn('[data-testid=area-tab-states]');
  const states = await viewer.sql(`select name, count(*), sum(${part}) from slice where ${inside} and category = 'thread_state' group by name order by 3 desc`);
  const whole = states.reduce((sum, [, , ns]) => sum + Number(ns), 0);
  same('states_are_sqls', (await table(page, 'area-states')).map((r) => [r[0], r[1], r[3]]), states.map(([name, n, ns]) => [name, n, `${(Number(ns) / whole * 100).toFixed(1)} %`]));

  await page.clickOn('[data-testid=area-tab-samples]');
  const samples = await table(page, 'area-samples'), n = Number(await one(`select count(*) from slice where ${inside} and category = 'cpu_sample'`));
  same('samples_are_by_function', samples.map((r) => [r[0], r[2]]).slice(0, 1), [['gemm', '100.0 %']]);
  same('each_is_a_period_of_the_sampler', samples.find((r) => r[0] === 'main')[3], `${n}.00 ms`);

  await page.clickOn('[data-testid=area-tab-counters]');
  const [[least, most]] = await viewer.sql(`select min(value), max(value) from counter c join track t on t.id = c.track_id where t.name = 'loss' and ts < ${to} and ts >= ${from}`);
  const loss = (await table(page, 'area-counters')).find((r) => r[0] === 'loss');
  same('counters_are_sqls', [Number(loss[2]), Number(loss[4])], [Number(least), Number(most) + (BigInt(from) % 1000000n === BASE % 1000000n ? 0 : 1)]); // and the value from before

  await page.clickOn('[data-testid=area-tab-flows]');
  const touches = (s) => `(${s}.ts < ${to} and (${s}.ts >= ${from} or ${s}.ts + ${s}.dur > ${from}))`;
  const flows = await viewer.sql(`select a.name, b.name, count(*), max(b.ts - a.ts - a.dur) from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in where ${touches('a')} or ${touches('b')} group by 1, 2`);
  const shown = await table(page, 'area-flows');
  same('flows_are_sqls', shown.map((r) => r.slice(0, 3)), flows.map((r) => r.slice(0, 3)));
  same('the_longest_has_sqls_duration', shown[0][6].replace(/[^\d]/g, '').replace(/0+$/, ''), String(Number(flows[0][3]) / 1000).replace(/0+$/, ''));
  await page.eval(() => document.querySelector('[data-testid=area-flows] .link').click());
  await page.idle();
  const [[longest]] = await viewer.sql(`select a.ts from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in where ${touches('a')} or ${touches('b')} order by b.ts - a.ts - a.dur desc limit 1`);
  const [[ts]] = await viewer.sql(`select ts from slice where name = 'launch' and ts = ${longest}`);
  same('and_leads_to_its_slice', (await page.state()).selection.name, ts ? 'launch' : null);
}

async function edges(page) {
  const box = await page.box('[data-testid=timeline]'), y = box.y + 60, right = box.x + box.width * 0.7;
  await page.drag(box.x + box.width * 0.3, y, box.x + box.width * 0.5, y + 40);
  const before = await settled(page);
  await page.mouse('mouseMoved', box.x + box.width * 0.5, y);
  check('the_pointer_shows_that_an_edge_can_be_dragged', await page.eval(() => getComputedStyle(document.getElementById('timeline')).cursor === 'ew-resize'));
  await page.drag(box.x + box.width * 0.5, y, right, y);
  const wider = await settled(page);
  same('the_other_edge_stays', wider.from, before.from);
  check('the_dragged_one_is_where_it_was_left', BigInt(wider.to) > BigInt(before.to), [before, wider]);
  await page.drag(right, y, box.x + box.width * 0.1, y);
  const turned = await settled(page);
  same('past_the_other_edge_it_becomes_that_one', turned.to, before.from);
  await page.drag(box.x + box.width * 0.1, y, box.x + box.width * 0.2, y);
  const moved = await settled(page);
  check('the_left_one_moves_too', moved.to === turned.to && BigInt(moved.from) > BigInt(turned.from), [turned, moved]);
}

/** Values of a query as a counter, which the pointer reads. */
async function counter(page, viewer) {
  await page.press('q');
  await page.eval((sql) => { const i = document.querySelector('[data-testid=sql-input]'); i.value = sql; i.dispatchEvent(new Event('input')); }, "select ts, value * 2 as twice from counter c join track t on t.id = c.track_id where t.name = 'loss'");
  await page.clickOn('[data-testid=sql-run]');
  await page.until(() => document.querySelector('[data-testid=sql-as-row]'));
  await page.clickOn('[data-testid=sql-as-row]');
  await page.idle();
  const label = await page.eval(() => [...document.querySelectorAll('.name.row')].map((n) => n.textContent).find((t) => t.includes('twice')));
  check('values_of_a_query_are_a_counter', label && label.includes('2 … 120'), label);
  const box = await page.box('[data-testid=timeline]'), row = await page.eval(() => [...document.querySelectorAll('.name.row')].find((n) => n.textContent.includes('twice')).getBoundingClientRect().y);
  const state = await page.state(), x = Math.round(box.width * 0.4), t = BigInt(state.from) + (BigInt(state.to) - BigInt(state.from)) * BigInt(x + 1) / BigInt(Math.round(box.width));
  await page.mouse('mouseMoved', box.x + x, row + 20);
  const [[value]] = await viewer.sql(`select value * 2 from counter c join track t on t.id = c.track_id where t.name = 'loss' and ts < ${t} order by ts desc limit 1`);
  await page.until(() => document.querySelector('#tooltip .head').textContent);
  same('the_pointer_reads_it', Number(await page.eval(() => document.querySelector('#tooltip .head').textContent)), Number(value));
  check('it_is_drawn', await page.eval((y) => { const c = document.querySelector('[data-testid=timeline]'), at = c.getContext('2d').getImageData(Math.round(c.width * 0.4), y, 1, 44).data; return new Set(Array.from({ length: 44 }, (_, i) => at.slice(4 * i, 4 * i + 3).join())).size > 1; }, Math.round(row - box.y)));
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/kinds.txt`;
  makeKinds(file);
  const viewer = await start(file), page = await open(browser, viewer.url), box = await page.box('#axis');
  await page.drag(box.x + box.width * 0.25, box.y + 10, box.x + box.width * 0.75, box.y + 10);
  await page.until(() => document.querySelector('[data-testid=area-tab-flows]'));
  await tabs(page, viewer, await settled(page));
  await page.press('Escape');
  await page.press('0');
  await page.idle();
  await edges(page);
  await page.press('Escape');
  await counter(page, viewer);
  await clean('area', page, viewer.origin);
});
