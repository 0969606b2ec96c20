// The pages beside the time line: there when the trace has such data, with the numbers of `stave steps` and `stave report`, leading to the right window.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { check, clean, open, run, same, stamp } from './harness.mjs';
import { BASE, HOSTILE, makeEngine, makeRank, makeServing, makeWaits, US } from './made.mjs';

const { STAVE } = process.env;

const stave = (...args) => execFileSync(STAVE, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 });
const report = (subject, file, ...more) => JSON.parse(stave('report', subject, file, '--json', ...(more.includes('--top') ? [] : ['--all']), ...more));

/** The same as the library records it: calls and spans in nanoseconds. The callback of batch 2 comes after an answer. */
function makeLife(file) {
  const lines = [], add = (t, text) => lines.push([5000000000n + BigInt(t), text]), life = (t, name, args) => add(t, `instant #2 "${name}" cat="serving.life" {${args}}`);
  life(0, 'model', 'model=0 name="m"');
  life(1, 'worker', 'worker=0 type="cpu" device=-1');
  for (let batch = 1, t = 1000; batch <= 6; batch++, t += 500000) {
    const ids = [batch * 2, batch * 2 + 1], answered = (k) => (batch === 2 && k ? 210011 : 230003 + k * 17);
    ids.forEach((id, k) => {
      life(t + k * 101, 'enqueued', `request=${id} model=0 flags=0`);
      life(t + 20007 + k, 'dequeued', `request=${id}`);
      life(t + answered(k), 'responded', `request=${id}`);
      life(t + 240000 + k, 'transport', `request=${id} read_ns=${id * 100} parse_ns=${id} serialise_ns=-1 write_ns=${7000 + k}`);
      add(t + k * 101, `slice #${3 + k} "request" cat="serving" dur=${stamp(BigInt(answered(k) - k * 101))} {request=${id} batch=${batch}}`);
    });
    life(t + 50013, 'collected', `batch=${batch} model=0 requests=2 samples=2 flags=0 took_ns=30000 n=2 r0=${ids[0]} r1=${ids[1]} r2=0 r3=0 r4=0 r5=0 r6=0 r7=0`);
    life(t + 60001, 'submitted', `batch=${batch}`);
    life(t + 80009, 'started', `batch=${batch} worker=0`);
    life(t + 200000 + batch * 1003, 'finished', `batch=${batch}`);
    life(t + 220021, 'callback', `batch=${batch} took_ns=1000`);
  }
  const head = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="server"', 'track #2 custom uuid=0x2 parent=#1 name="life cycle"', 'track #3 custom uuid=0x3 parent=#1 name="requests 1"', 'track #4 custom uuid=0x4 parent=#1 name="requests 2"'];
  fs.writeFileSync(file, head.concat(lines.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)).map(([t, text]) => `${stamp(t)} ${text}`)).join('\n') + '\n');
}

/** The rows of a table as objects, from what "Copy as CSV" copies: exact values in the order on screen. */
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

const number = (v) => (v === undefined || v === null ? '' : String(v));
const tabs = (page) => page.eval(() => [...document.querySelectorAll('#pages button')].map((b) => b.textContent));
const figure = (page, name) => page.eval((n) => { const box = [...document.querySelectorAll('.figures div')].find((d) => d.querySelector('dt').textContent === n); return box ? box.querySelector('strong').textContent : null; }, name);

async function show(page, id) {
  await page.until((i) => document.getElementById(`page-${i}`), id);
  await page.clickOn(`[data-testid=page-${id}]`);
  await page.until((i) => window.stave.state().page === i && document.querySelector('#page .figures'), id);
  await page.idle();
}

/** The window must show [from, to) with an eighth of it on both sides, on the time line. */
async function windowIs(name, page, from, to) {
  await page.until(() => window.stave.state().page === 'timeline');
  await page.idle();
  const state = await page.state(), pad = (to - from) / 8n;
  same(name, [state.from, state.to], [String(from - pad), String(to + pad)]);
  return state;
}

async function steps(page, file) {
  await show(page, 'steps');
  const wanted = JSON.parse(stave('steps', file, '--to', 'json')), rows = await table(page, 'steps-table'), { first } = await page.state();
  const names = { forward: 'forward_ns', backward: 'backward_ns', data: 'data_ns', other: 'other_ns', idle: 'idle_ns', disk: 'disk_ns', 'not traced': 'untraced_ns', copy: 'copy_ns', 'kernels on the device': 'device_kernel_ns', 'copies on the device': 'device_copy_ns' };
  same('as_many_steps', rows.length, wanted.length);
  const bad = wanted.filter((w, i) => {
    const r = rows[i];
    return r.step !== String(w.step) || r.duration !== String(w.dur_ns) || BigInt(r.begins) - BigInt(first) !== BigInt(w.start_ns) || Object.keys(names).some((n) => (r[n] ?? '0') !== String(w[names[n]]))
      || r.note !== ({ first: 'slow first step' }[w.note] || w.note || '');
  });
  same('steps_are_those_of_the_command', bad, []);
  check('times_are_larger_than_doubles_hold', BigInt(rows[0].begins) > 2n ** 60n);
  same('the_number_of_steps_is_shown', await figure(page, 'Steps'), String(wanted.length));
  same('a_chart_for_each_track', await page.eval(() => document.querySelectorAll('[data-testid=steps-bars]').length), 2);
  // the eighth bar of the second track
  const step = rows.filter((r) => r.track.includes('101'))[7], target = await page.eval(() => {
    const canvas = document.querySelectorAll('[data-testid=steps-bars]')[1];
    canvas.scrollIntoView({ block: 'center' });
    const b = canvas.getBoundingClientRect(), slot = Math.min(84, (b.width - 68 - 14) / 24);
    return { x: b.x + 68 + slot * 7.5, y: b.y + 80 };
  });
  check('the_late_step_is_marked', step.note !== '', step.note);
  await page.click(target.x, target.y);
  const state = await windowIs('a_click_on_a_bar_shows_its_step', page, BigInt(step.begins), BigInt(step.begins) + BigInt(step.duration));
  same('and_selects_it', [state.selection.name, state.selection.ts], ['ProfilerStep#7', step.begins]);
  await page.press('3');
  await page.until(() => document.querySelector('[data-testid=steps-bars]'));
  await page.eval(() => document.querySelector('[data-testid=steps-bars]').focus());
  for (const key of ['ArrowRight', 'ArrowRight', 'Enter']) await page.press(key);
  await windowIs('the_keyboard_leads_there_too', page, BigInt(rows[1].begins), BigInt(rows[1].begins) + BigInt(rows[1].duration));
}

async function gpu(page, file, viewer) {
  await show(page, 'gpu');
  const wanted = report('gpu', file), kernels = await table(page, 'gpu-kernels');
  same('kernels_are_those_of_the_report', kernels.map((k) => [k.kernel, k.count, k.total, k.mean, k.p50, k.p99, k.max]), wanted.kernel.map((k) => [k.kernel, k.count, k.total_ns, k.mean_ns, k.p50_ns, k.p99_ns, k.max_ns].map(String)));
  const gaps = await table(page, 'gpu-gaps'), text = (list) => list.map((g) => g.join(' ')).sort();
  same('idle_causes_are_those_of_the_report', text(gaps.map((g) => [g.device, g['idle for'], g.gaps, g.total])), text(wanted.gap.map((g) => [g.device, g.cause, g.gaps, g.total_ns])));
  same('kernels_are_counted', await figure(page, 'Kernels'), String(wanted.device.reduce((n, d) => n + d.kernels, 0)));
  same('a_strip_for_each_device', await page.eval(() => document.querySelectorAll('[data-testid=gpu-strip]').length), wanted.device.length);
  const [[begin, length]] = await viewer.sql('select ts, dur from step order by ts limit 1');
  await page.eval(() => document.querySelector('[data-testid=gpu-steps]').focus());
  for (const key of ['Home', 'Enter']) await page.press(key);
  await windowIs('a_step_of_the_gpu_leads_to_its_exact_time', page, BigInt(begin), BigInt(begin) + BigInt(length));
  await show(page, 'gpu');
  const [[id, ts, dur]] = await viewer.sql(`select id, ts, dur from slice where name = '${HOSTILE}' and category = 'kernel' order by dur desc limit 1`);
  await page.eval((name) => [...document.querySelectorAll('[data-testid=gpu-kernels] button.link')].find((b) => b.textContent === name).click(), HOSTILE);
  const state = await windowIs('a_kernel_leads_to_its_longest_run', page, BigInt(ts), BigInt(ts) + BigInt(dur));
  same('which_is_selected', state.selection.id, id);
}

async function io(page, file, viewer) {
  await show(page, 'io');
  const wanted = report('io', file), files = await table(page, 'io-files'), processes = await table(page, 'io-processes');
  const row = (r) => [r.opens, r.reads, r.writes, r.read ?? r.bytes_read, r.written ?? r.bytes_written, r.time ?? r.time_ns, r['read p99'] ?? r.read_p99_ns].map(number);
  const by = (key) => (a, b) => b[key] - a[key];
  same('files_are_those_of_the_report', files.map((f) => [f.file, ...row(f)]), wanted.file.sort(by('time_ns')).map((f) => [f.name, ...row(f)]));
  same('processes_are_those_of_the_report', processes.map((p) => [p.process, p.role, ...row(p)]), wanted.process.sort(by('time_ns')).map((p) => [`${p.name} (pid ${p.pid})`, p.role, ...row(p)]));
  same('bytes_are_shown', await figure(page, 'Read'), `${(wanted.total.bytes_read / 1024).toFixed(1)} KiB`);
  const [[id]] = await viewer.sql(`select id from io where path = '/data/${HOSTILE}' order by dur desc limit 1`);
  await page.eval((name) => [...document.querySelectorAll('[data-testid=io-files] button.link')].find((b) => b.textContent === name).click(), `/data/${HOSTILE}`);
  await page.until(() => window.stave.state().page === 'timeline');
  await page.idle();
  same('a_file_leads_to_its_longest_call', (await page.state()).selection.id, id);
}

async function ranks(page, file) {
  await show(page, 'ranks');
  const all = JSON.parse(stave('steps', file, '--to', 'json')), rows = await table(page, 'ranks-steps');
  const wanted = Array.from({ length: 24 }, (_, i) => {
    const own = all.filter((s) => s.step === i), begins = own.map((s) => s.start_ns), durations = own.map((s) => s.dur_ns);
    return [i, Math.max(...begins) - Math.min(...begins), Math.max(...durations) - Math.min(...durations)].map(String);
  });
  same('skew_is_that_of_the_steps', rows.map((r) => [r.step, r['begins differ by'], r['durations differ by']]), wanted);
  same('ranks_have_their_numbers', (await table(page, 'ranks-table')).map((r) => r.rank.split(' · ')[0]), ['rank 0', 'rank 1']);
  check('the_late_rank_is_the_slowest', rows[7].slowest.startsWith('rank 1'), rows[7].slowest);
}

/** The page is in the URL; keys switch; theme and reload keep it. */
async function switching(page) {
  await page.press('4');
  await page.until(() => location.hash.includes('page=gpu'));
  await page.reload();
  await page.until(() => window.stave && window.stave.state().page === 'gpu' && document.querySelector('[data-testid=gpu-kernels]'));
  check('the_url_holds_the_page', true);
  await page.press('t');
  await page.until(() => document.documentElement.dataset.theme === 'dark' && document.querySelector('[data-testid=gpu-kernels]'));
  await page.press('t');
  const before = await page.state();
  await page.hold('d', 60);
  await page.idle();
  same('keys_of_the_time_line_rest', (await page.state()).from, before.from);
  await page.press('Escape');
  same('escape_leads_back', (await page.state()).page, 'timeline');
  await page.press('9');
  same('a_page_that_is_not_there', (await page.state()).page, 'timeline');
  await page.press('2');
  await page.press('/');
  same('search_is_on_the_time_line', [(await page.state()).page, await page.eval(() => document.activeElement.id)], ['timeline', 'search']);
}

/** Requests by their numbers: each phase has the time of the report. */
async function waterfalls(name, page, file, ids) {
  const { request } = report('batch', file, '--by', 'request'), most = Math.max(...request.map((q) => q.total_ns));
  const shown = () => page.eval(() => [Number(document.querySelector('#page .bar strong').textContent.slice(8)), ...[...document.querySelectorAll('[data-testid=serving-waterfall] td[data-ns]')].map((td) => Number(td.dataset.ns))]);
  const of = (id) => { const q = request.find((one) => one.request === id); return [id, ...['queue', 'batch', 'submit', 'scheduling', 'run', 'callback', 'respond'].map((phase) => q[`${phase}_ns`])]; };
  const first = await shown();
  same(`${name}_the_slowest_request_comes_first`, [first, first.slice(1).reduce((a, b) => a + b)], [of(first[0]), most]);
  for (const id of ids) {
    await page.eval((text) => { const box = document.querySelector('[data-testid=serving-number]'); box.focus(); box.value = text; }, String(id));
    await page.press('Enter');
    await page.until((text) => document.querySelector('#page .bar strong').textContent === text, `Request ${id}`);
    same(`${name}_phases_of_request_${id}`, await shown(), of(id));
  }
}

async function life(browser, start, tmp) {
  const file = `${tmp}/life.txt`;
  makeLife(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await show(page, 'serving');
  await page.until(() => document.querySelector('[data-testid=serving-waterfall]'));
  await waterfalls('life', page, file, [4, 5, 12]);
  const outside = report('batch', file).transport, keys = ['requests', 'mean', 'p50', 'max'];
  same('outside_of_the_queue_is_as_in_the_report', (await table(page, 'serving-transport')).map((t) => [t.what, ...keys.map((key) => t[key])]),
    outside.map((t) => [t.transport, ...[t.requests, t.mean_ns, t.p50_ns, t.max_ns].map(String)]));
  same('what_is_not_known_is_not_there', outside.map((t) => t.transport), ['read', 'parse', 'write']);
  await page.eval(() => document.querySelector('[data-testid=serving-histogram]').focus());
  for (const key of ['Home', 'Enter']) await page.press(key);
  const fastest = Math.min(...report('batch', file, '--by', 'request').request.map((q) => q.total_ns));
  await page.until((ns) => [...document.querySelectorAll('[data-testid=serving-waterfall] td[data-ns]')].reduce((sum, td) => sum + Number(td.dataset.ns), 0) === ns, fastest);
  check('the_first_bar_of_the_histogram_has_the_fastest', true);
  await clean('life', page, viewer.origin);
}

async function serving(browser, start, tmp) {
  const file = `${tmp}/batching_trace.json`;
  makeServing(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await page.until(() => document.getElementById('page-serving'));
  same('serving_only', await tabs(page), ['Timeline', 'Explain', 'Serving']);
  await show(page, 'serving');
  const wanted = report('batch', file), phases = await table(page, 'serving-phases');
  same('requests_are_counted', await figure(page, 'Requests answered'), String(wanted.summary.requests));
  same('phases_are_those_of_the_report', phases.map((p) => [p.phase, p.mean, p.p50, p.p95, p.max]), wanted.phase.map((p) => [p.phase, p.mean_ns, p.p50_ns, p.p95_ns, p.max_ns].map(String)));
  const batches = await table(page, 'serving-batches');
  same('batches_are_those_of_the_report', batches.map((b) => [b.number, b.from, b.size, b.run, b.total, b.requests]), wanted.batch.map((b) => [b.batch, b.start_ns, b.samples, b.run_ns, b.total_ns, b.requests].map(String)));
  await waterfalls('batching', page, file, [17]);
  const batch = batches[4], base = 1000000n;
  await page.eval((i) => document.querySelectorAll('[data-testid=serving-batches] tbody tr:not(.spacer) button.link')[i].click(), 4);
  await windowIs('a_batch_leads_to_its_time', page, base + BigInt(batch.from), base + BigInt(batch.from) + BigInt(batch.total));
  await clean('serving', page, viewer.origin);
}

async function llm(browser, start, tmp) {
  const file = `${tmp}/engine.json`;
  makeEngine(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await page.until(() => document.getElementById('page-llm'));
  same('llm_only', await tabs(page), ['Timeline', 'Explain', 'Waits', 'LLM']);
  await show(page, 'llm');
  await page.until(() => document.querySelector('[data-testid=llm-waterfall]'));
  const wanted = report('llm', file), phases = await table(page, 'llm-phases'), latency = await table(page, 'llm-latency'), why = await table(page, 'llm-why');
  same('llm_requests_are_counted', await figure(page, 'Requests answered'), String(wanted.summary.requests));
  same('llm_phases_are_those_of_the_report', phases.map((p) => [p.phase, p.mean, p.p50, p.p99, p.max]), wanted.phase.map((p) => [p.phase, p.mean_ns, p.p50_ns, p.p99_ns, p.max_ns].map(String)));
  same('llm_latencies_are_those_of_the_report', latency.map((p) => [p.count, p.p50, p.p99]), wanted.latency.map((p) => [p.n, p.p50_ns, p.p99_ns].map(String)));
  same('llm_slow_tokens_are_those_of_the_report', why.map((w) => [w.request, w.cause, w.waited, w.detail]), wanted.why.map((w) => [w.request, w.cause, String(w.gap_ns), w.detail]));
  const shown = await page.eval(() => [document.querySelector('#page .bar strong').textContent.slice(8), ...[...document.querySelectorAll('[data-testid=llm-waterfall] td[data-ns]')].map((td) => Number(td.dataset.ns))]);
  const { request } = report('llm', file, '--by', 'request'), one = request.find((q) => q.request === shown[0]);
  same('llm_phases_of_a_request', shown.slice(1), ['queue', 'prefill', 'decode', 'preempted', 'transfer', 'respond'].map((name) => one[`${name}_ns`]));
  await page.eval(() => document.querySelector('[data-testid=llm-why] tbody tr:not(.spacer) button.link').click());
  await page.until(() => !document.querySelector('#page:not([hidden])'));
  same('llm_a_slow_token_leads_to_its_step', (await page.state()).page, 'timeline');
  await show(page, 'waits');
  same('requests_have_their_waits', (await table(page, 'waits-table')).map((r) => r.span).sort(), report('wait', file).span.filter((s) => s.kind === 'request').map((s) => `request ${s.number}`).sort());
  await clean('llm', page, viewer.origin);
}

/** The findings are those of the command; a button leads to the worst unit and pins the culprit's row. */
async function explain(page, file) {
  const wanted = JSON.parse(stave('explain', file, '--json')), said = () => page.eval(() => document.querySelector('#why span').textContent);
  check('there_is_a_finding', wanted.findings.length > 0);
  await page.until(() => document.querySelector('#why span').textContent);
  same('the_time_line_names_the_main_cause', await said(), wanted.findings[0].sentence);
  const bar = await page.eval(() => [...document.querySelectorAll('#why span')].map((s) => s.textContent)), most = wanted.findings.slice(0, 3);
  same('and_each_finding_is_a_line', bar.slice(0, -1), most.map((f) => f.sentence));
  check('the_last_line_says_what_was_observed', bar.at(-1).includes('Observed: ') && bar.at(-1).includes(`states of threads ${Math.round(wanted.coverage.states * 100)} %`), bar.at(-1));
  await show(page, 'explain');
  same('findings_are_those_of_the_command', await page.eval(() => [...document.querySelectorAll('[data-testid=explain-sentence]')].map((p) => p.textContent)), wanted.findings.map((f) => f.sentence));
  same('the_time_is_that_of_the_command', await page.eval(() => document.querySelectorAll('[data-testid=explain-strip] .piece').length), Object.keys(wanted.time).length);
  check('no_value_of_the_script_is_shown', !/\b(false|undefined|null|NaN)\b/.test(await page.text('#page')));
  const [worst] = wanted.findings[0].worst, [unit] = JSON.parse(stave('steps', file, '--to', 'json')).filter((s) => s.step === worst.unit);
  await page.clickOn('[data-testid=explain-go-1]');
  const state = await windowIs('a_finding_leads_to_its_worst_unit', page, BASE + BigInt(unit.start_ns), BASE + BigInt(unit.start_ns) + BigInt(unit.dur_ns));
  same('and_selects_it_there', state.selection.ts, String(BASE + BigInt(unit.start_ns)));
}

/** A selected wait says what for and who ended it; the keys lead to that thread and back. */
async function followed(browser, viewer) {
  const [[id, ends]] = await viewer.sql("select s.id, s.ts + s.dur from slice s where s.category = 'thread_state' and s.name = 'Sleeping' and exists (select 1 from slice w where w.track_id = s.track_id and w.ts = s.ts + s.dur and extract_arg(w.arg_set_id, 'waker_tid') is not null) order by s.dur desc limit 1");
  const detail = await viewer.api(`/api/slice?id=${id}`), { wait } = detail;
  check('a_wait_has_a_reason', typeof wait.for === 'string' && typeof wait.what === 'string', wait);
  same('it_ends_when_it_was_woken', wait.at, String(ends));
  const [[tid]] = await viewer.sql(`select extract_arg(w.arg_set_id, 'waker_tid') from slice s join slice w on w.track_id = s.track_id and w.ts = s.ts + s.dur where s.id = ${id}`);
  same('by_whom', wait.waker_tid, String(tid));
  check('who_ran_then', BigInt(wait.by.ts) <= BigInt(ends) && BigInt(wait.by.ts) + BigInt(wait.by.dur) >= BigInt(ends), wait.by);
  const waker = await viewer.api(`/api/slice?slice=${wait.by.slice}`);
  check('the_waker_knows_whom_it_woke', waker.wait.woke.some((w) => w.ts === wait.at), waker.wait);
  const page = await open(browser, `${viewer.url}&slice=${detail.slice}&from=${BigInt(detail.ts) - 1000n}&to=${BigInt(ends) + 1000n}`);
  await page.until(() => document.querySelector('#pane-slice .facts-list'));
  check('the_pane_says_what_for', (await page.text('#pane-slice')).includes(wait.what));
  await page.press('[');
  await page.until((slice) => window.stave.state().selection?.slice === slice, wait.by.slice);
  await page.press(']');
  await page.until((slice) => window.stave.state().selection?.slice !== slice, wait.by.slice);
  same('and_back_to_the_one_that_was_woken', (await page.state()).selection.ts, wait.at);
}

async function waits(browser, start, tmp) {
  const file = `${tmp}/waits.txt`;
  makeWaits(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await page.until(() => document.getElementById('page-waits'));
  same('waits_beside_steps', await tabs(page), ['Timeline', 'Explain', 'Steps', 'Waits', 'I/O']);
  await explain(page, file);
  await followed(browser, viewer);
  await show(page, 'waits');
  const wanted = report('wait', file), spans = await table(page, 'waits-table'), longest = await table(page, 'waits-longest'), locks = await table(page, 'waits-locks');
  const { wait, chain, summary } = wanted, steps = wanted.span.filter((s) => s.kind === 'step').sort((a, b) => (b.dur_ns - b.compute_ns) - (a.dur_ns - a.compute_ns)), begin = (row) => BASE + BigInt(row.start_ns);
  same('steps_are_divided_as_in_the_report', spans.map((s) => [s.span, s.begins, s.time, s.compute, s.data, s['longest for']]), steps.map((s) => [`step ${s.number}`, String(begin(s)), String(s.dur_ns), String(s.compute_ns), String(s.data_ns), s.longest_for]));
  same('the_longest_waits_are_those_of_the_report', longest.map((w) => [w.wait, w.in, w.time, w.for, w.because, w.of, w.file]), wait.map((w) => [String(w.wait), w.in, String(w.dur_ns), w.for, w.cause, w.cause_thread ?? '', w.path ?? '']));
  same('the_planted_wait_comes_first', [wait[0].in, wait[0].for, wait[0].path], ['step 5', 'data', `/data/${HOSTILE}`]);
  same('locks_are_those_of_the_report', locks.map((l) => [l.for, l['held by'], l.time, l['then for a CPU']]), wanted.lock.map((l) => [l.lock, `${l.releaser} (tid ${l.releaser_tid})`, String(l.total_ns), String(l.queued_ns)]));
  same('a_lock_has_its_name_as_text', [locks[0].for, locks[0].time], [HOSTILE, '6000000']);
  const shown = () => page.eval(() => [document.querySelector('#page .bar strong').textContent, ...[...document.querySelectorAll('[data-testid=waits-chain] td[data-ns]')].map((td) => Number(td.dataset.ns))]);
  const chainOf = (number) => [`Wait ${number}`, ...chain.filter((c) => c.wait === number).map((c) => c.dur_ns)];
  same('the_chain_of_the_longest_wait', await shown(), chainOf(1));
  check('which_has_parts', chainOf(1).length > 1);
  await page.eval(() => document.querySelectorAll('[data-testid=waits-longest] tbody tr:not(.spacer) td:first-child button.link')[1].click());
  same('a_number_shows_another_chain', await shown(), chainOf(2));
  same('the_strip_names_all_classes', await page.eval(() => document.querySelectorAll('[data-testid=waits-strip] .piece').length), ['compute', 'data', 'gpu', 'lock', 'disk', 'cpu', 'rank', 'peer', 'queue', 'sleep', 'other'].filter((key) => summary[`${key}_ns`] > 0).length);
  await page.eval(() => document.querySelectorAll('[data-testid=waits-longest] tbody tr:not(.spacer) button.link')[1].click());
  await windowIs('a_wait_leads_to_its_time', page, begin(wait[0]), begin(wait[0]) + BigInt(wait[0].dur_ns));
  await show(page, 'waits');
  await page.eval(() => document.querySelector('[data-testid=waits-chain] button.link').click());
  const [part] = chain.filter((c) => c.wait === 1);
  await windowIs('and_so_does_a_part_of_its_chain', page, begin(part), begin(part) + BigInt(part.dur_ns));
  await show(page, 'waits');
  await page.eval(() => document.querySelector('[data-testid=waits-spans]').focus());
  for (const key of ['Home', 'Enter']) await page.press(key);
  const [one] = wanted.span.filter((s) => s.kind === 'step');
  await windowIs('a_bar_leads_to_its_step', page, begin(one), begin(one) + BigInt(one.dur_ns));
  await clean('waits', page, viewer.origin);
}

/** Two ranks without steps: 30 collectives, rank 1 late by 2 ms, a group with a hostile name; at the end rank 1 is missing. */
function makeComm(file, rank) {
  const pid = 100 + rank, lines = ['# stave text 1', 'clock realtime', `meta "rank" "${rank}"`, 'meta "boot_id" "one machine"', `track #1 process uuid=0x${rank + 1} pid=${pid} name="mpi"`, `track #2 thread uuid=0x${rank + 11} parent=#1 pid=${pid} tid=${pid} name="main"`];
  const args = (seq) => `{op="allreduce" group="${HOSTILE}" seq=${seq} bytes=4096 group_size=2 group_ranks="[0, 1]"}`;
  for (let i = 0; i < 30; i++) {
    const begin = BASE + (BigInt(i) * 10000n + (rank ? 2000n : 0n)) * US, end = BASE + (BigInt(i) * 10000n + 2500n) * US;
    lines.push(`${stamp(begin)} slice #2 "MPI_Allreduce" cat="collective" dur=${stamp(end - begin)} ${args(i)}`);
  }
  if (rank === 0) lines.push(`${stamp(BASE + 310000n * US)} slice #2 "MPI_Allreduce" cat="collective" dur=unfinished ${args(30)}`, `${stamp(BASE + 900000n * US)} instant #2 "killed"`);
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
}

async function comm(browser, start, tmp) {
  for (const rank of [0, 1]) makeComm(`${tmp}/comm${rank}.txt`, rank);
  const file = `${tmp}/comm.pftrace`;
  stave('merge', `${tmp}/comm0.txt`, `${tmp}/comm1.txt`, '-o', file);
  const wanted = report('comm', file), viewer = await start(file), page = await open(browser, viewer.url);
  await page.until(() => document.getElementById('page-ranks'));
  same('collectives_make_a_page', await tabs(page), ['Timeline', 'Explain', 'Ranks']);
  await show(page, 'ranks');
  same('the_verdict_is_the_report\'s', await page.eval(() => [...document.querySelectorAll('[data-testid=comm-verdict]')].map((p) => p.textContent).join('\n')), wanted.summary.verdict);
  check('and_it_names_the_ranks', wanted.summary.slow === '1' && wanted.summary.waited_for === '1', JSON.stringify(wanted.summary));
  same('ranks_are_those_of_the_report', (await table(page, 'comm-ranks')).map((r) => [r.rank, r.last, r.lost, r.waits, r.verdict]), wanted.rank.map((r) => [String(r.rank), String(r.last), String(r.lost_ns), String(r.wait_ns), r.verdict ?? '']));
  same('collectives_are_those_of_the_report', (await table(page, 'comm-collectives')).map((r) => [r.collective, r.group, r.skew, r.transfer]), wanted.collective.map((c) => [`${c.op} ${c.seq}`, c.group, String(c.skew_ns ?? ''), String(c.transfer_ns ?? '')]));
  same('differences_are_those_of_the_report', (await table(page, 'comm-differences')).map((r) => [r.difference, r.ranks, r['in words']]), wanted.difference.map((d) => [d.kind, d.ranks, d.text]));
  await clean('comm', page, viewer.origin);
}

async function nothing(browser, start, tmp) {
  const file = `${tmp}/plain.txt`;
  fs.writeFileSync(file, ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="p"', 'track #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="main"', '1.000000000 slice #2 "work" cat="app" dur=0.500000000'].join('\n') + '\n');
  const viewer = await start(file), page = await open(browser, viewer.url);
  await page.until(() => document.querySelector('#pages button'));
  same('a_plain_trace_has_no_pages', [await tabs(page), await page.eval(() => document.getElementById('pages').hidden)], [['Timeline'], true]);
  await page.press('2');
  same('its_keys_do_nothing', (await page.state()).page, 'timeline');
  await clean('plain', page, viewer.origin);
}

run(async ({ browser, start, tmp }) => {
  for (const rank of [0, 1]) makeRank(`${tmp}/rank${rank}.txt`, rank);
  const file = `${tmp}/ranks.pftrace`;
  stave('merge', `${tmp}/rank0.txt`, `${tmp}/rank1.txt`, '-o', file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  await page.until(() => document.getElementById('page-ranks'));
  same('pages_of_what_the_trace_has', await tabs(page), ['Timeline', 'Explain', 'Steps', 'GPU', 'Operators', 'I/O', 'Ranks']);
  await steps(page, file);
  await gpu(page, file, viewer);
  await io(page, file, viewer);
  await ranks(page, file);
  await switching(page);
  await clean('pages', page, viewer.origin);
  await serving(browser, start, tmp);
  await llm(browser, start, tmp);
  await waits(browser, start, tmp);
  await life(browser, start, tmp);
  await comm(browser, start, tmp);
  await nothing(browser, start, tmp);
});
