// The critical path of the selection as a row: driven by real input, compared with `stave critical-path`.
import { execFileSync } from 'node:child_process';
import { check, clean, open, run, same } from './harness.mjs';
import { makeWaits } from './made.mjs';

const { STAVE } = process.env;
const pathOf = (file, id) => JSON.parse(execFileSync(STAVE, ['critical-path', file, '--from', `id:${id}`, '--to', `id:${id}`, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })).rows;

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/waits.txt`;
  makeWaits(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  const box = await page.box('[data-testid=timeline]'), names = async () => page.eval(() => [...document.querySelectorAll('.names-pinned .label')].map((l) => l.textContent));
  const first = BigInt((await page.state()).first), told = (pieces) => pieces.map(({ ts, dur, kind }) => [String(BigInt(ts) - first), dur, kind]);
  const wanted = (id) => pathOf(file, id).map((s) => [String(s.start_ns), String(s.dur_ns), s.kind]);
  const x = async (ns) => { const { from, to } = await page.state(); return box.x + Number((BigInt(ns) - BigInt(from)) * 100000n / (BigInt(to) - BigInt(from))) / 100000 * box.width; };
  const shown = async () => { await page.until(() => window.stave.state().path); await page.idle(); return (await page.state()).path; };
  const select = async ([id, ts, dur, row, line]) => {
    const { y } = (await page.state()).rows.find((r) => r.id === Number(row));
    await page.click(await x(BigInt(ts) + BigInt(dur) / 2n), box.y + y + 3 + 18 * Number(line) + 8);
    await page.until((one) => window.stave.state().selection?.id === one, id);
    await page.idle();
  };
  const columns = 'select id, ts, dur, view_row, view_line from slice where';
  // a wait
  const [wait] = await viewer.sql(`${columns} category = 'thread_state' and name = 'Sleeping' and extract_arg(arg_set_id, 'reason') = 'pipe' order by dur desc limit 1`);
  await select(wait);
  await page.press('k');
  const pieces = await shown();
  check('of_a_wait_it_leads_to_who_ended_it', pieces.length > 3 && pieces.every((p) => p.row !== Number(wait[3])), pieces);
  same('of_a_wait_it_is_that_of_critical_path', told(pieces), wanted(wait[0]));
  check('it_is_a_row_at_the_top', (await names())[0].startsWith('Critical path of Sleeping'), await names());
  // the fixed colours: the pixel of each piece is that of the legend
  const { pieces: full } = await viewer.api(`/api/path?id=${wait[0]}`);
  const legend = { disk: 'disk, page', run: 'running', pipe: 'another thread, process or device' };
  for (const piece of full.filter((p) => BigInt(p.dur) > 1000000n)) {
    const key = piece.kind === 'run' ? 'run' : piece.for, at = Math.round(await x(BigInt(piece.ts) + BigInt(piece.dur) / 2n) - box.x);
    const [pixel, chip] = await page.eval((px, name) => {
      const [r, g, b] = document.querySelector('[data-testid=timeline]').getContext('2d').getImageData(px * devicePixelRatio, 4 * devicePixelRatio, 1, 1).data;
      const box2 = [...document.querySelectorAll('#states span')].find((s) => s.textContent === name);
      return [`rgb(${r}, ${g}, ${b})`, box2 ? getComputedStyle(box2.querySelector('.chip')).backgroundColor : 'none'];
    }, at, legend[key]);
    same(`${key}_has_its_colour`, pixel, chip);
  }
  // a piece leads to its thread
  const other = full.find((p) => p.row !== null && p.slice !== null && BigInt(p.dur) > 1000000n);
  await page.click(await x(BigInt(other.ts) + BigInt(other.dur) / 2n), box.y + 11);
  await page.until((slice) => window.stave.state().selection?.slice === slice, other.slice);
  same('a_piece_leads_to_the_row_of_its_thread', (await page.state()).selection.row, other.row);
  same('and_the_path_stays', told(await shown()), wanted(wait[0]));
  await page.press('Escape');
  await page.idle();
  same('escape_closes_it', [(await page.state()).path, await names()], [null, []]);
  check('and_keeps_the_selection', (await page.state()).selection !== null);
  // a slice, and the area of its time on all rows
  const [step] = await viewer.sql(`${columns} name like 'ProfilerStep#%' order by dur desc limit 1`);
  await select(step);
  await page.press('k');
  same('of_a_slice_it_is_that_of_critical_path', told(await shown()), wanted(step[0]));
  await page.press('Escape');
  await page.press('e');
  await page.until(() => window.stave.state().selection?.kind === 'area');
  await page.press('k');
  same('of_an_area_it_leads_to_what_ends_last', told(await shown()), wanted(step[0]));
  check('and_says_so', (await names())[0] === 'Critical path of the area', await names());
  const state = await page.state();
  const none = await viewer.api('/api/path', { from: state.first, to: String(first + 1n), rows: [] });
  same('an_area_without_rows_has_none', none.pieces, []);
  const all = await viewer.api('/api/path', { from: '-9223372036854775808', to: '9223372036854775807', rows: [[0, 0, 1]] });
  same('an_area_of_all_times_begins_with_the_trace', [all.from, all.pieces[0].ts], [state.first, state.first]);
  same('what_is_no_slice_is_refused', (await viewer.api('/api/path?slice=99999999')).error, 'no such slice');
  await clean('path', page, viewer.origin);
});
