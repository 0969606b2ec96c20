// A wait in the pane: what for, which lock, who ended it, both stacks, the arrow and the keys; what a finding and the palette lead to. Driven by real input, compared with SQL.
import { execFileSync } from 'node:child_process';
import { check, clean, open, run, same } from './harness.mjs';
import { LOCK, makeLocks, makeWaits } from './made.mjs';

// Machado, Oliveira and Fernandes (2009): what people see who lack one kind of cones.
const EYES = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]], tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** CIE Lab of "rgb(r, g, b)" as these eyes see it. */
function lab(text, eyes) {
  const linear = text.match(/\d+/g).slice(0, 3).map((v) => v / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = eyes.map((row) => Math.min(1, Math.max(0, row.reduce((sum, a, i) => sum + a * linear[i], 0)))), f = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883].map(f);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** Any two colours of states differ by three times what can just be seen, in both themes and for all eyes. */
async function colours(page) {
  for (const theme of ['light', 'dark']) {
    await page.until((name) => document.documentElement.dataset.theme === name, theme);
    await page.idle();
    const chips = await page.eval(() => [...document.querySelectorAll('#states .chip')].map((c) => getComputedStyle(c).backgroundColor));
    for (const [name, eyes] of Object.entries(EYES)) {
      const seen = chips.map((c) => lab(c, eyes)), apart = seen.flatMap((a, i) => seen.slice(i + 1).map((b) => Math.hypot(...a.map((v, k) => v - b[k]))));
      check(`states_can_be_told_apart_${theme}_${name}`, chips.length >= 6 && Math.min(...apart) > 7, [Math.min(...apart), chips]);
    }
    await page.press('t');
  }
}

const facts = (page) => page.eval(() => Object.fromEntries([...document.querySelectorAll('#pane-slice .facts-list dt')].map((dt) => [dt.textContent, dt.nextElementSibling.textContent])));
const stacks = (page) => page.eval(() => [...document.querySelectorAll('#pane-slice .stack')].map((list) => [list.previousElementSibling.textContent, ...[...list.children].map((li) => li.textContent)]));
const selected = (page, id) => page.until((one) => window.stave.state().selection?.id === one, id);

async function clickOn(page, viewer, [id, ts, dur, row, line]) {
  const state = await page.state(), box = await page.box('[data-testid=timeline]'), { y } = state.rows.find((r) => r.id === Number(row));
  const middle = BigInt(ts) + BigInt(dur) / 2n;
  await page.click(box.x + Number((middle - BigInt(state.from)) * 10000n / (BigInt(state.to) - BigInt(state.from))) / 10000 * box.width, box.y + y + 3 + 18 * Number(line) + 8);
  await selected(page, id);
  await page.idle();
}

async function pane(page, viewer) {
  const columns = 'select id, ts, dur, view_row, view_line from slice where', before = () => page.eval(() => { const c = document.querySelector('[data-testid=timeline]'); window.seen = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; });
  const [wait] = await viewer.sql(`${columns} category = 'offcpu_sample' order by dur desc limit 1`);
  await page.press('F2'); // nothing
  await before();
  await clickOn(page, viewer, wait);
  const said = await facts(page), [[lock]] = await viewer.sql(`select lock from lock_wait where id = ${wait[0]}`);
  check('it_says_what_for_and_which_lock', said['Waits for'].includes('lock') && said['Waits for'].includes(`0x${BigInt(lock).toString(16)}`) && BigInt(lock) === LOCK, said['Waits for']);
  same('how_long_it_then_waited_for_a_cpu', said['Then for a CPU'], '2 ms');
  same('who_ended_it', said['Ended by'], 'holder (tid 11)');
  same('both_stacks_are_lists_innermost_first', await stacks(page), [['Waits in', 'take (app.c:20)', 'main (app.c:10)'], ['Ended in', 'release (app.c:44)', 'work (app.c:31)']]);
  // an arrow from the one that ended it: seen in the rows that lie between the two
  const { rows } = await page.state(), middle = rows.find((r) => r.name === 'middle');
  const [[runs]] = await viewer.sql(`select id from slice where category = 'thread_state' and name = 'Running' and track_id = (select track_id from slice where category = 'thread_state' and name = 'Sleeping' and extract_arg(arg_set_id, 'reason') = 'sleep' limit 1) and ts <= ${wait[1]} order by ts desc limit 1`);
  check('there_is_a_row_between', Boolean(middle) && Boolean(runs), rows.map((r) => r.name));
  const changed = await page.eval((top, bottom) => { const c = document.querySelector('[data-testid=timeline]'), now = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = top * c.width * 4; i < bottom * c.width * 4; i += 4) if (now[i] !== window.seen[i]) n++; return n; }, 0, rows.at(-1).y + rows.at(-1).height);
  check('an_arrow_is_drawn', changed > 40, changed);
  await page.eval(() => [...document.querySelectorAll('#pane-slice .facts-list .link')].find((a) => a.textContent.startsWith('holder')).click());
  await selected(page, runs);
  check('the_name_leads_to_what_the_holder_did', true);
  const woke = await page.eval(() => [...document.querySelectorAll('#pane-slice h3')].some((h) => h.textContent.startsWith('Woke')));
  check('which_says_whom_it_woke', woke);
  await page.press(']');
  await page.until((one) => window.stave.state().selection.id !== one, runs);
  same('and_back', (await page.state()).selection.name, 'Runnable');
  await page.press('[');
  await selected(page, runs);
  check('and_forth', true);
  // F: the row of the selection is in sight, above the pane
  await page.press('f');
  await page.idle();
  const state = await page.state(), box = await page.box('[data-testid=timeline]'), own = state.rows.find((r) => r.id === state.selection.row);
  check('f_leaves_the_row_in_sight', own && own.y >= 0 && own.y + own.height <= box.height, own);
}

/** A finding: the window, the selection, and the rows that it is about, pinned. The palette knows the pages. */
async function finding(browser, start, tmp) {
  const file = `${tmp}/waits.txt`;
  makeWaits(file);
  const { findings: [first] } = JSON.parse(execFileSync(process.env.STAVE, ['explain', file, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  const viewer = await start(file), page = await open(browser, viewer.url);
  await page.press(':');
  await page.type('page waits');
  await page.press('Enter');
  await page.until(() => window.stave.state().page === 'waits');
  check('the_palette_knows_the_pages', true);
  await page.clickOn('[data-testid=page-explain]');
  await page.until(() => document.querySelector('[data-testid=explain-go-1]'));
  await page.clickOn('[data-testid=explain-go-1]');
  await page.until(() => window.stave.state().page === 'timeline' && window.stave.state().selection);
  await page.idle();
  const { rows } = await page.state(), { rows: all } = await viewer.api('/api/trace'), pinned = rows.filter((r) => r.pinned);
  same('the_row_of_the_culprit_is_pinned', pinned.map((r) => all[r.id].tid), [String(first.culprit.tid)]);
  same('the_slice_is_selected', (await page.state()).selection.ts, (await viewer.sql(`select ts from step where number = ${first.worst[0].unit}`))[0][0]);
  await clean('finding', page, viewer.origin);
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/locks.txt`;
  makeLocks(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  const legend = await page.eval(() => [...document.querySelectorAll('#states span')].map((s) => s.textContent).filter(Boolean));
  check('the_legend_has_the_states', ['running', 'waits for a CPU', 'preempted', 'disk, page', 'lock', 'sleeps'].every((word) => legend.includes(word)), legend);
  await colours(page);
  await pane(page, viewer);
  await clean('waits', page, viewer.origin);
  await finding(browser, start, tmp);
});
