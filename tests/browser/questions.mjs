// Seven questions that people ask of a run: each is answered from the first screen in at most four clicks or keys, and the answer is that of SQL or of a report.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { check, clean, open, run, same } from './harness.mjs';
import { makeJob, makeRank, makeServing, makeTorch, makeWaits } from './made.mjs';

const { STAVE } = process.env, MOST = 4;
const json = (...args) => JSON.parse(execFileSync(STAVE, [...args, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));

/** A page that counts what is done on it. */
class Hands {
  constructor(page) {
    Object.assign(this, { page, n: 0 });
  }

  async settle() {
    await this.page.idle();
  }

  async click(selector, text = null) {
    this.n++;
    await this.page.until((s, t) => [...document.querySelectorAll(s)].some((e) => t === null || e.textContent.trim() === t), selector, text);
    await this.page.eval((s, t) => { const e = [...document.querySelectorAll(s)].find((one) => t === null || one.textContent.trim() === t); e.scrollIntoView({ block: 'center' }); e.dataset.here = 'yes'; }, selector, text);
    await this.page.clickOn('[data-here]');
    await this.page.eval(() => document.querySelectorAll('[data-here]').forEach((e) => delete e.dataset.here));
    await this.settle();
  }

  async at(x, y) {
    this.n++;
    await this.page.click(x, y);
    await this.settle();
  }

  async press(key) {
    this.n++;
    await this.page.press(key);
    await this.settle();
  }
}

async function ask(browser, name, viewer, act) {
  const page = await open(browser, viewer.url), hands = new Hands(page);
  await act(page, hands);
  check(`${name}_in_${hands.n}_steps`, hands.n >= 1 && hands.n <= MOST, String(hands.n));
  await clean(name, page, viewer.origin);
}

const cells = (page, testid) => page.eval((id) => [...document.querySelector(`[data-testid=${id}] tbody tr:not(.spacer)`).children].map((td) => td.textContent), testid);
const heads = (page, testid) => page.eval((id) => [...document.querySelectorAll(`[data-testid=${id}] th`)].map((th) => th.textContent.replace(/ [↓↑]$/, '')), testid);
const row = async (page, testid) => { await page.until((id) => document.querySelector(`[data-testid=${id}] tbody tr:not(.spacer)`), testid); const h = await heads(page, testid); return Object.fromEntries((await cells(page, testid)).map((c, i) => [h[i], c])); };
const onTimeLine = (page) => page.until(() => window.stave.state().page === 'timeline' && window.stave.state().selection);

async function makeLater(from, to) {
  fs.writeFileSync(to, fs.readFileSync(from, 'utf8').replace(/("forward" cat="cpu_op" dur=)0\.000200000/g, '$10.000290000'));
}

await run(async ({ browser, start, tmp }) => {
  const torch = `${tmp}/torch.json`, waits = `${tmp}/waits.txt`, serving = `${tmp}/batching_trace.json`, ranks = [`${tmp}/rank0.txt`, `${tmp}/rank1.txt`], later = `${tmp}/later.txt`;
  makeTorch(torch);
  makeWaits(waits);
  makeServing(serving);
  ranks.forEach(makeRank);
  await makeLater(ranks[0], later);
  const ofTorch = await start(torch), ofWaits = await start(waits), ofServing = await start(serving);

  await ask(browser, 'where_is_the_time', ofWaits, async (page, hands) => {
    await hands.click('[data-testid=page-explain]');
    await page.until(() => document.querySelector('[data-testid=explain-strip] .piece'));
    const { time } = json('explain', waits), largest = Object.keys(time).sort((a, b) => time[b] - time[a])[0];
    check('the_largest_part', (await page.eval(() => document.querySelector('[data-testid=explain-strip] .piece').title)).startsWith(`${largest}:`), largest);
  });
  await ask(browser, 'what_is_the_gpu_idle_for', ofTorch, async (page, hands) => {
    await hands.click('[data-testid=page-gpu]');
    const { cause } = { cause: (await row(page, 'gpu-gaps'))['idle for'] };
    await hands.click('[data-testid=gpu-gaps] button.link', cause);
    await onTimeLine(page);
    const [[id, ts, end]] = await ofTorch.sql(`select next_id, ts, ts + dur from gpu_gap where cause = '${cause}' and device = 0 order by part_ns desc, ts limit 1`), state = await page.state();
    check('its_longest_gap_is_in_the_window', state.selection.id === id && BigInt(state.from) < BigInt(ts) && BigInt(state.to) > BigInt(end), state.selection);
  });
  await ask(browser, 'which_file_is_slow', ofWaits, async (page, hands) => {
    await hands.click('[data-testid=page-waits]');
    const longest = await row(page, 'waits-longest'), [wanted] = json('report', 'wait', waits).wait;
    same('the_file_and_the_step_that_waited', [longest.in, longest.file], [wanted.in, wanted.path]);
    await hands.click('[data-testid=page-io]');
    await hands.click('[data-testid=io-files] button.link', longest.file);
    await onTimeLine(page);
    const [[id]] = await ofWaits.sql(`select id from io where path = '${longest.file.replace(/'/g, "''")}' order by dur desc limit 1`);
    same('and_its_slowest_read', (await page.state()).selection.id, id);
  });
  await ask(browser, 'which_request_is_slowest', ofServing, async (page, hands) => {
    await hands.click('[data-testid=page-serving]');
    await page.until(() => document.querySelector('[data-testid=serving-waterfall] td[data-ns]'));
    const [slowest] = json('report', 'batch', serving, '--by', 'request').request.sort((a, b) => b.total_ns - a.total_ns);
    const phases = await page.eval(() => [...document.querySelectorAll('[data-testid=serving-waterfall] tbody tr')].map((tr) => [tr.querySelector('th').textContent, Number(tr.querySelector('td[data-ns]').dataset.ns)]));
    same('its_time_by_phase', phases, phases.map(([name]) => [name, slowest[`${name}_ns`]]));
  });
  const ofRanks = await start(ranks);
  await ask(browser, 'which_rank_is_late', ofRanks, async (page, hands) => {
    await hands.click('[data-testid=page-ranks]');
    await row(page, 'ranks-steps');
    await hands.click('[data-testid=ranks-steps] th button', 'durations differ by');
    const worst = await row(page, 'ranks-steps'), [[number]] = await ofRanks.sql('select number from step group by 1 order by max(dur) - min(dur) desc limit 1');
    same('the_step', worst.step, number);
    check('the_rank', worst.slowest.startsWith('rank 1'), worst.slowest);
  });
  const job = [`${tmp}/job0.txt`, `${tmp}/job1.txt`];
  job.forEach(makeJob);
  const ofJob = await start(job);
  await ask(browser, 'which_rank_do_the_others_wait_for', ofJob, async (page, hands) => {
    await hands.click('[data-testid=page-ranks]');
    await row(page, 'ranks-steps');
    await hands.click('[data-testid=ranks-steps] th button', 'arrives late by');
    const worst = await row(page, 'ranks-steps'), [[number, rank, late]] = await ofJob.sql(`select s.number, t.rank, c.skew_ns - c.wait_ns as late from collective c join track t on t.id = c.track_id
      join step s on s.track_id = c.track_id and c.ts >= s.ts and c.ts < s.ts + s.dur where c.skew_ns is not null order by 3 desc limit 1`);
    same('the_step_with_the_latest_arrival', worst.step, number);
    check('the_rank_that_arrives_last', worst['last to arrive'].startsWith(`rank ${rank}`) && rank === '1', worst['last to arrive']);
    same('how_late', worst['arrives late by'], `${(Number(late) / 1e6).toFixed(2)} ms`);
    check('though_its_steps_are_as_long_as_the_others', worst['durations differ by'] === '0 ns', worst['durations differ by']);
    same('the_map_is_of_arrivals', await page.eval(() => document.querySelector('[data-testid=ranks-grid]').closest('section').querySelector('h2').textContent), 'Who the others wait for');
    const [verdict] = json('report', 'comm', ...job).summary.verdict.split('\n');
    same('and_why', await page.eval(() => document.querySelector('[data-testid=comm-verdict]').textContent), verdict);
    const [red, green] = await page.eval(() => { const c = document.querySelector('[data-testid=ranks-grid]'), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, n = [0, 0]; for (let i = 0; i < p.length; i += 4) if (p[i] > 200 && p[i + 1] < 170) n[Math.floor(i / 4 / c.width) > (c.height - 26) / 2 ? 1 : 0]++; return n; });
    check('only_its_row_is_coloured', red === 0 && green > 20, [red, green]);
    await hands.click('[data-testid=comm-ranks] button.link', '1');
    await onTimeLine(page);
    const [[id]] = await ofJob.sql('select c.slice_id from collective c join track t on t.id = c.track_id where t.rank = 1 and c.skew_ns is not null order by c.skew_ns - c.wait_ns desc limit 1');
    same('its_latest_arrival_on_the_time_line', (await page.state()).selection.id, id);
  });
  const compared = await start([ranks[0], later], '--compare');
  await ask(browser, 'what_changed', compared, async (page, hands) => {
    await hands.click('#tab-compare');
    await page.until(() => document.querySelector('#pane-compare tbody tr:not(.spacer)'));
    const first = await page.eval(() => [...document.querySelectorAll('#pane-compare tbody tr:not(.spacer)')].map((tr) => tr.children[0].textContent));
    check('the_name_that_takes_longer_now', first[0] === 'forward', first);
  });
  await ask(browser, 'what_does_this_thread_wait_for', ofWaits, async (page, hands) => {
    const [[id, ts, dur, at, line]] = await ofWaits.sql("select id, ts, dur, view_row, view_line from slice where category = 'thread_state' and name = 'Sleeping' and extract_arg(arg_set_id, 'reason') = 'pipe' order by dur desc limit 1");
    const state = await page.state(), box = await page.box('[data-testid=timeline]'), shown = state.rows.find((r) => r.id === Number(at)), middle = BigInt(ts) + BigInt(dur) / 2n;
    await hands.at(box.x + Number((middle - BigInt(state.from)) * 10000n / (BigInt(state.to) - BigInt(state.from))) / 10000 * box.width, box.y + shown.y + 3 + 18 * Number(line) + 8);
    await page.until(() => document.querySelector('#pane-slice .facts-list'));
    same('the_wait_is_selected', (await page.state()).selection.id, id);
    const { wait } = await ofWaits.api(`/api/slice?id=${id}`);
    check('it_says_what_for', (await page.text('#pane-slice')).includes(wait.what), wait.what);
    await hands.press('[');
    await page.until((slice) => window.stave.state().selection?.slice === slice, wait.by.slice);
    check('and_leads_to_who_made_it_wait', true);
  });
});
