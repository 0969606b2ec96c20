// Operators, and the way from every sum to its instances: driven by real input, compared with SQL and the reports.
import { execFileSync } from 'node:child_process';
import { check, clean, open, run, same } from './harness.mjs';
import { LOCK, makeLocks, makeServing, makeTorch, makeWaits, RELU } from './made.mjs';

const { STAVE } = process.env;

const stave = (...args) => execFileSync(STAVE, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 });
const report = (subject, file) => JSON.parse(stave('report', subject, file, '--json'));

/** The rows of a table as objects, from what "Copy as CSV" copies. */
async function table(page, testid) {
  const text = await page.eval((id) => {
    let copied = '';
    Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (all) => { copied = all; } }, configurable: true });
    [...document.querySelector(`[data-testid=${id}]`).closest('section').querySelectorAll('button')].find((b) => b.textContent === 'Copy as CSV').click();
    return copied;
  }, testid);
  const cells = (line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((m) => (m[1] === undefined ? m[2] : m[1].replace(/""/g, '"')));
  const [names, ...rows] = text.trim().split('\r\n').map(cells);
  return rows.map((row) => Object.fromEntries(row.map((cell, i) => [names[i], cell])));
}

async function show(page, id) {
  await page.until((i) => document.getElementById(`page-${i}`), id);
  await page.clickOn(`[data-testid=page-${id}]`);
  await page.until((i) => window.stave.state().page === i && document.querySelector('#page .figures'), id);
  await page.idle();
}

const press = (page, selector, text) => page.eval((s, t) => [...document.querySelectorAll(s)].find((b) => t === null || b.textContent.trim() === t).click(), selector, text);
const bar = (page) => page.eval(() => (document.getElementById('instances').hidden ? '' : document.querySelector('[data-testid=instances-text]').textContent));

/** The bar leads through what the statement gives (id, from, to): the longest, the next, the previous, in time. */
async function walks(name, page, wanted) {
  await page.until(() => window.stave.state().page === 'timeline' && !document.getElementById('instances').hidden);
  await page.idle();
  const at = async () => { await page.idle(); const s = await page.state(); return [s.selection && s.selection.id, s.from, s.to]; };
  const shown = ([id, from, to]) => { const pad = (BigInt(to) - BigInt(from)) / 8n; return [id, String(BigInt(from) - pad), String(BigInt(to) + pad)]; };
  same(`${name}_leads_to_the_longest`, await at(), shown(wanted[0]));
  check(`${name}_says_how_many`, (await bar(page)).startsWith(`the longest of ${wanted.length} `) || wanted.length >= 1000, await bar(page));
  if (wanted.length < 2) return;
  await page.press('>');
  await page.until((id) => window.stave.state().selection?.id === id, wanted[1][0]);
  same(`${name}_next`, await at(), shown(wanted[1]));
  await page.clickOn('[data-testid=instances-Previous]');
  await page.until((id) => window.stave.state().selection?.id === id, wanted[0][0]);
  same(`${name}_previous`, await at(), shown(wanted[0]));
  const inTime = [...wanted].sort((a, b) => (BigInt(a[1]) < BigInt(b[1]) ? -1 : 1)), place = inTime.indexOf(wanted[0]), next = inTime[place + 1];
  if (!next) return;
  await press(page, '#instances [role=radio]', 'by time');
  await page.clickOn('[data-testid=instances-Next]');
  await page.until((id) => window.stave.state().selection?.id === id, next[0]);
  same(`${name}_next_in_time`, await at(), shown(next));
}

async function operators(page, file, viewer) {
  await show(page, 'ops');
  const wanted = report('ops', file), gpu = report('gpu', file), sum = (rows, key) => rows.reduce((all, r) => all + Number(r[key]), 0);
  const kernels = sum(gpu.kernel, 'total_ns');
  same('sums_are_those_of_report_gpu', [wanted.summary.kernels_ns, sum(wanted.operator, 'self_ns'), sum(wanted.module, 'self_ns'), sum(wanted.phase, 'total_ns'), sum(wanted.kernel, 'total_ns')], Array(5).fill(kernels));
  const rows = await table(page, 'ops-operators'), key = (list) => list.map((r) => r.join(' ')).sort();
  same('operators_are_those_of_the_report', key(rows.map((r) => [r.operator, r.calls, r['on the host'], r.itself, r.work, r['of devices'], r['launched itself']])),
    key(wanted.operator.map((o) => [o.operator ?? '(none)', o.calls, o.host_ns, o.host_self_ns, o.count, o.total_ns, o.self_ns])));
  const own = await viewer.sql('select operator, sum(dur) from gpu_work group by 1');
  same('as_sql_sums_what_each_launched', key(rows.filter((r) => r['launched itself'] !== '0').map((r) => [r.operator, r['launched itself']])), key(own));
  const host = await viewer.sql("select name, count(*), sum(self_dur) from slice where category = 'cpu_op' group by 1");
  same('as_sql_counts_calls', key(rows.filter((r) => r.calls !== '0').map((r) => [r.operator, r.calls, r.itself])), key(host));
  same('phases', key(wanted.phase.map((p) => [p.phase, p.count])), key([['forward', 40], ['backward', 21], ['optimizer', 10]]));
  same('backward_has_the_module_of_forward', await viewer.sql("select module, count(*) from gpu_work where phase = 'backward' group by 1 order by 1"), [['Linear_0', '10'], ['Linear_1', '10'], ['MLP/Dense_0', '1']]);
  same('jax_names_the_operator', await viewer.sql("select operator, module, phase from gpu_work where name = 'fusion_3'"), [['dot_general', 'MLP/Dense_0', 'backward']]);
  same('nested_operators_count_once', wanted.operator.filter((o) => o.operator === 'aten::linear').map((o) => [o.calls, o.count, o.self_ns]), [[20, 40, 0]]);
  same('kernels_are_short', [...new Set(wanted.kernel.map((k) => k.kernel))].sort(), ['adam_kernel', 'at::native::elementwise<…>', 'cutlass::Kernel<…>', 'fusion_3']);
  await press(page, '#page [role=radio]', 'Kernels');
  await page.until(() => document.querySelector('[data-testid=ops-kernels]'));
  const kinds = await table(page, 'ops-kernels');
  same('kernels_have_shapes', [...new Set(kinds.filter((k) => k.operator === 'aten::mm' && k.phase === 'forward').map((k) => k.shapes))].sort(), ['64×128, 128×256', '64×128, 128×512']);
  await page.clickOn('[data-testid=ops-exact]');
  same('the_exact_name_on_demand', (await table(page, 'ops-kernels')).filter((k) => k.kernel === RELU).length, 2);
}

/** A file, a lock, a module, a request and a batch: each name leads to the longest, the next and the previous one. */
async function others(browser, start, tmp) {
  const [waits, locks, serving] = ['waits.txt', 'locks.txt', 'batching_trace.json'].map((name) => `${tmp}/${name}`), longest = 'order by dur desc, ts';
  makeWaits(waits);
  makeLocks(locks);
  makeServing(serving);
  const ofWaits = await start(waits), files = await open(browser, ofWaits.url);
  await show(files, 'io');
  await press(files, '[data-testid=io-files] button.link', '/data/7');
  await walks('a_file', files, await ofWaits.sql(`select id, ts, ts + dur from io where path = '/data/7' ${longest}`));
  await clean('files', files, ofWaits.origin);
  const ofLocks = await start(locks), page = await open(browser, ofLocks.url);
  await show(page, 'waits');
  await page.eval(() => document.querySelector('[data-testid=waits-locks] tbody tr:not(.spacer) button.link').click());
  await walks('a_lock', page, await ofLocks.sql(`select id, ts, ts + dur from lock_wait where lock = ${LOCK} ${longest}`));
  await clean('locks', page, ofLocks.origin);
  const ofServing = await start(serving), server = await open(browser, ofServing.url);
  await show(server, 'serving');
  await server.until(() => document.querySelector('[data-testid=serving-waterfall]'));
  await press(server, '#page .bar button', 'Time line');
  const bars = async (name, word) => { await server.until(() => !document.getElementById('instances').hidden); check(name, new RegExp(word).test(await bar(server)), await bar(server)); };
  await bars('a_request_leads_to_the_others', ' of 40 ');
  const first = (await server.state()).selection.id, [[slowest]] = await ofServing.sql("select id from slice where name = 'request' order by dur desc, ts limit 1");
  same('the_slowest_request_comes_first', first, slowest);
  await server.press('>');
  await server.until((id) => window.stave.state().selection?.id !== id, first);
  check('and_the_next_one_is_no_longer', BigInt((await server.state()).selection.dur) <= BigInt((await ofServing.sql(`select dur from slice where id = ${first}`))[0][0]));
  await show(server, 'serving');
  await server.eval(() => document.querySelector('[data-testid=serving-batches] tbody tr:not(.spacer) button.link').click());
  await bars('a_batch_leads_to_the_others', ` of ${(await ofServing.sql('select count(*) from batch'))[0][0]} `);
  await clean('server', server, ofServing.origin);
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/torch.json`;
  makeTorch(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await operators(page, file, viewer);
  const span = 'id, ts, ts + dur', longest = 'order by dur desc, ts';
  // from the tree: the first kernel of backward
  await press(page, '[data-testid=ops-tree] [aria-level="1"]', null);
  await page.eval(() => {
    const unfold = (level) => { const row = [...document.querySelectorAll(`[data-testid=ops-tree] [aria-level="${level}"]`)].find((r) => r.getAttribute('aria-expanded') === 'false'); if (row) row.click(); };
    if (document.querySelector('[data-testid=ops-tree] [aria-level="1"]').getAttribute('aria-expanded') === 'false') unfold(1);
    if (document.querySelector('[data-testid=ops-tree] [aria-level="2"]').getAttribute('aria-expanded') === 'false') unfold(2);
    unfold(3);
  });
  const leaf = await page.eval(() => document.querySelector('[data-testid=ops-tree] [aria-level="4"] .label').textContent);
  same('the_tree_ends_in_kernels', leaf, 'cutlass::Kernel<…>');
  await page.eval(() => document.querySelector('[data-testid=ops-tree] [aria-level="4"]').click());
  const [[module]] = await viewer.sql("select module from gpu_work where phase = 'backward' group by 1 order by sum(dur) desc, module limit 1");
  await walks('a_kernel_under_its_operator', page, await viewer.sql(`select ${span} from gpu_work where phase = 'backward' and module = '${module}' and operator = 'aten::mm' ${longest}`));
  await show(page, 'ops');
  await press(page, '[data-testid=ops-operators] button.link', 'aten::relu');
  await walks('an_operator', page, await viewer.sql(`select ${span} from slice where name = 'aten::relu' ${longest}`));
  await show(page, 'ops');
  await press(page, '#page [role=radio]', 'Modules');
  await page.until(() => document.querySelector('[data-testid=ops-modules] button.link'));
  await press(page, '[data-testid=ops-modules] button.link', 'Linear_0');
  await walks('a_module', page, await viewer.sql(`select ${span} from slice where name = 'nn.Module: Linear_0' ${longest}`));
  await show(page, 'gpu');
  await press(page, '[data-testid=gpu-kernels] button.link', 'adam_kernel');
  await walks('a_kernel', page, await viewer.sql(`select ${span} from slice where name = 'adam_kernel' ${longest}`));
  await show(page, 'gpu');
  const gap = report('gpu', file).gap.filter((g) => g.device.startsWith('GPU 0')).sort((a, b) => b.max_ns - a.max_ns)[0];
  await press(page, '[data-testid=gpu-gaps] button.link', gap.cause);
  const gaps = await viewer.sql(`select next_id, ts, ts + dur, part_ns from gpu_gap where cause = '${gap.cause}' and device = 0 order by part_ns desc, ts`);
  same('a_gap_is_as_long_as_the_report_says', [gaps.length, gaps[0][3]], [gap.gaps, String(gap.max_ns)]);
  await walks('an_idle_cause', page, gaps.map((g) => g.slice(0, 3)));
  await show(page, 'steps');
  await page.eval(() => document.querySelector('[data-testid=steps-table] tbody tr:not(.spacer) button.link').click());
  await page.until(() => window.stave.state().page === 'timeline');
  check('a_step_leads_to_the_others', (await bar(page)).includes(' of 10 '), await bar(page));
  await press(page, '#instances button', 'Close');
  same('the_bar_closes', await bar(page), '');
  await clean('links', page, viewer.origin);
  await others(browser, start, tmp);
});
