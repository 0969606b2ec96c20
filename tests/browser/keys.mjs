// Every interaction that people know from other viewers, by keyboard and by mouse.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { check, clean, open, run, same, stamp } from './harness.mjs';

const MS = 1000000n, BASE = 5000000000n, STEPS = 60;

/** 60 steps with parts and arguments, arrows from reads to steps, a counter, 40 idle-ish threads, a process without events. */
function makeTrace(file) {
  const head = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=7 name="alpha"', 'track #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="main"',
    'track #3 thread uuid=0x3 parent=#1 pid=7 tid=8 name="reader"', 'track #4 counter uuid=0x4 parent=#1 name="memory"',
    'track #5 process uuid=0x5 pid=9 name="nothing"', 'track #6 thread uuid=0x6 parent=#5 pid=9 tid=9 name="asleep"'];
  for (let i = 0; i < 40; i++) head.push(`track #${100 + i} thread uuid=0x${(100 + i).toString(16)} parent=#1 pid=7 tid=${100 + i} name="pool ${i}"`);
  const events = [];
  for (let i = 0; i < STEPS; i++) {
    const t = BASE + BigInt(i) * 10n * MS;
    events.push([t, `slice #3 "read" dur=${stamp(MS)} {file="part ${i}"}`], [t + MS / 2n, `flow #3 "next" {@flow_begin:0x${(i + 1).toString(16)}}`]);
    events.push([t + 2n * MS, `slice #2 "step" dur=${stamp(7n * MS)} {number=${i}}`], [t + 2n * MS, `flow #2 "next" {@flow_end:0x${(i + 1).toString(16)}}`]);
    events.push([t + 3n * MS, `slice #2 "compute" dur=${stamp(4n * MS)} {batch=${i * 2} kind="dense"}`], [t, `counter #4 {${(i * 37) % 100}}`]);
    events.push([t + 4n * MS, `slice #${100 + i % 40} "task" dur=${stamp(MS)}`]);
  }
  events.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  fs.writeFileSync(file, head.concat(events.map(([t, text]) => `${stamp(t)} ${text}`)).join('\n') + '\n');
}

const span = (state) => BigInt(state.to) - BigInt(state.from);

async function whole(page) {
  await page.press('Escape');
  await page.press('Escape');
  await page.press('0');
  await page.idle();
  return page.state();
}

/** A point in the middle of a slice, in the page's pixels. */
async function pointOf(page, row, ts, line = 0) {
  const box = await page.box('[data-testid=timeline]');
  return page.eval((b, name, t, l) => {
    const s = window.stave.state(), r = s.rows.find((one) => one.name === name);
    const x = Number((BigInt(t) - BigInt(s.from)) * BigInt(s.width) / (BigInt(s.to) - BigInt(s.from)));
    return { x: b.x + x, y: b.y + r.y + 3 + l * 18 + 8 };
  }, box, row, ts.toString(), line);
}

async function keys(page) {
  let before = await whole(page);
  const box = await page.box('[data-testid=timeline]');
  await page.mouse('mouseMoved', box.x + 500, box.y + 100);
  for (const [key, name, test] of [
    ['w', 'w_zooms_in', (a, b) => span(b) < span(a)], ['d', 'd_pans_right', (a, b) => span(a) === span(b) && BigInt(b.from) > BigInt(a.from)],
    ['a', 'a_pans_left', (a, b) => span(a) === span(b) && BigInt(b.from) < BigInt(a.from)], ['s', 's_zooms_out', (a, b) => span(b) > span(a)],
  ]) {
    await page.hold(key, 150);
    await page.idle();
    const after = await page.state();
    check(name, test(before, after), [before.from, before.to, after.from, after.to]);
    before = after;
  }
  await page.press('w');
  await page.idle();
  let after = await page.state();
  check('a_tap_moves_too', span(after) < span(before));
  await page.hold('ArrowRight', 100);
  await page.idle();
  const right = await page.state();
  check('arrow_right_pans', BigInt(right.from) > BigInt(after.from));
  await page.hold('ArrowDown', 200);
  await page.idle();
  after = await page.state();
  check('arrow_down_scrolls', after.scroll > 0 && after.from === right.from, after.scroll);
  await page.keyEvent('down', 'ArrowUp', []); // held until it is there: how far a key goes in a given time is the machine's affair
  await page.until(() => window.stave.state().scroll === 0);
  await page.keyEvent('up', 'ArrowUp', []);
  await page.idle();
  same('arrow_up_scrolls_back', (await page.state()).scroll, 0);
}

async function mouse(page) {
  const start = await whole(page), box = await page.box('[data-testid=timeline]'), x = box.x + 400, y = box.y + 200;
  await page.wheel(x, y, 0, 120);
  await page.idle();
  let state = await page.state();
  check('wheel_scrolls', state.scroll === 120 && state.from === start.from, state.scroll);
  await page.wheel(x, y, 0, -120);
  await page.wheel(x, y, 0, -200, 'ctrl');
  await page.idle();
  state = await page.state();
  const time = (s) => BigInt(s.from) + 400n * span(s) / BigInt(s.width), moved = time(state) - time(start);
  check('ctrl_wheel_zooms_at_the_pointer', span(state) < span(start) && (moved < 0n ? -moved : moved) <= span(start) / BigInt(start.width), [state.from, state.to]);
  await page.wheel(x, y, 0, 100, 'shift');
  await page.idle();
  const panned = await page.state();
  check('shift_wheel_pans', BigInt(panned.from) > BigInt(state.from) && span(panned) === span(state));
  await page.drag(x, y, x - 100, y, 'shift');
  await page.idle();
  const dragged = await page.state();
  same('shift_drag_pans_by_pixels', (BigInt(dragged.from) - BigInt(panned.from)).toString(), (100n * span(panned) / BigInt(panned.width)).toString());
  const strip = await page.box('#overview');
  await page.drag(strip.x + strip.width / 2, strip.y + 20, strip.x + strip.width / 2 + 60, strip.y + 20);
  await page.idle();
  check('overview_moves_the_window', (await page.state()).from !== dragged.from);
}

async function slices(page, viewer) {
  await whole(page);
  const ts = BASE + 2n * MS + 100n * MS, at = await pointOf(page, 'main', ts + 3n * MS, 1);
  await page.click(at.x, at.y);
  await page.idle();
  let { selection } = await page.state();
  same('click_selects_the_slice', [selection.name, selection.ts, selection.dur], ['compute', (ts + MS).toString(), (4n * MS).toString()]);
  const details = await page.text('[data-testid=details]');
  check('details_have_arguments', ['compute', 'batch', '20', 'kind', 'dense', 'main', 'alpha'].every((word) => details.includes(word)), details);
  check('details_have_the_parent', (await page.text('#pane-slice .links')).includes('step'));
  check('selection_is_announced', (await page.text('#live')).startsWith('compute, 4 ms'));
  await page.press('f');
  await page.idle();
  check('f_fits_the_selection', span(await page.state()) === 5n * MS, span(await page.state()).toString());
  await page.press('f');
  await page.idle();
  check('f_again_shows_everything', span(await page.state()) > 590n * MS);

  await page.press('.');
  await page.idle();
  same('period_is_the_next_of_the_name', (await page.state()).selection.ts, (ts + MS + 10n * MS).toString());
  await page.press(',');
  await page.press(',');
  await page.idle();
  await page.press(',');
  await page.idle();
  selection = (await page.state()).selection;
  check('comma_is_the_previous_of_the_name', selection.name === 'compute' && BigInt(selection.ts) < ts + MS, selection);
  await page.press('ArrowUp', 'alt');
  await page.idle();
  selection = (await page.state()).selection;
  same('alt_up_is_the_parent', selection.name, 'step');
  const arrows = await viewer.api(`/api/slice?slice=${selection.slice}`);
  await page.press('[');
  await page.idle();
  same('bracket_follows_an_arrow_back', [(await page.state()).selection.name, (await page.state()).selection.slice], ['read', arrows.in[0].slice.slice]);
  await page.press(']');
  await page.idle();
  same('bracket_follows_an_arrow_forward', (await page.state()).selection.slice, selection.slice);
  await page.press('Escape');
  same('escape_clears_the_selection', (await page.state()).selection, null);
}

async function areas(page, viewer) {
  await whole(page);
  const a = await pointOf(page, 'main', BASE + 100n * MS), b = await pointOf(page, 'main', BASE + 300n * MS, 1);
  await page.drag(a.x, a.y, b.x, b.y);
  await page.idle();
  const { selection } = await page.state();
  check('drag_selects_an_area', selection && selection.kind === 'area' && selection.rows.length === 1, selection);
  const rows = await viewer.sql(`select name, count(*), sum(min(ts + dur, ${selection.to}) - max(ts, ${selection.from})) from slice
    where view_row = ${selection.rows[0]} and ts < ${selection.to} and ts + dur > ${selection.from} group by name order by 3 desc`);
  const table = await page.eval(() => [...document.querySelectorAll('[data-testid=area-table] tbody tr:not(.spacer)')].map((tr) => [...tr.children].slice(0, 2).map((td) => td.textContent)));
  same('area_table_equals_sql', table, rows.map((r) => [r[0], r[1]]));
  await page.clickOn('[data-testid=area-table] th:nth-child(1) button');
  const sorted = await page.eval(() => [...document.querySelectorAll('[data-testid=area-table] tbody tr:not(.spacer) td:first-child')].map((td) => td.textContent));
  same('area_table_sorts', sorted, [...sorted].sort());
  await page.eval(() => document.querySelector('[data-testid=timeline]').focus());
  await page.press('a', 'ctrl');
  await page.idle();
  const all = Number((await viewer.sql('select count(*) from slice'))[0][0]);
  check('ctrl_a_selects_everything', (await page.text('#pane-area .title')).startsWith(`${all} slices`), await page.text('#pane-area .title'));
  await page.press('Escape');
  await page.press('e');
  await page.idle();
  same('e_selects_the_window', (await page.state()).selection.kind, 'area');
}

async function search(page) {
  await whole(page);
  await page.press('/');
  same('slash_goes_to_the_search', await page.eval(() => document.activeElement.dataset.testid), 'search');
  await page.type('comp*');
  await page.press('Enter');
  await page.idle();
  const first = (await page.state()).selection;
  same('enter_goes_to_the_first_hit', [first.name, first.ts], ['compute', (BASE + 3n * MS).toString()]);
  await page.press('Enter');
  await page.idle();
  same('enter_goes_to_the_next_hit', (await page.state()).selection.ts, (BASE + 13n * MS).toString());
  same('search_says_which_of_how_many', await page.text('#search-count'), `2 of ${STEPS}`);
  await page.press('Enter', 'shift');
  await page.idle();
  same('shift_enter_goes_back', (await page.state()).selection.ts, first.ts);
  same('search_lists_hits', await page.eval(() => document.querySelectorAll('#pane-search tbody tr:not(.spacer)').length > 10), true);
  await page.press('Escape');
}

async function sql(page) {
  await whole(page);
  await page.press('q');
  await page.eval(() => { document.querySelector('[data-testid=sql-input]').value = ''; });
  await page.type("select count(*) as n from slice where name = 'step'");
  await page.clickOn('[data-testid=sql-run]');
  await page.idle();
  same('sql_runs', await page.eval(() => document.querySelector('[data-testid=sql-result] td:not([colspan])').textContent), String(STEPS));
  await page.eval(() => { const i = document.querySelector('[data-testid=sql-input]'); i.value = ''; i.focus(); });
  await page.type("select ts, dur, name from slice where name = 'step' order by ts limit 7");
  await page.press('Enter', 'ctrl');
  await page.idle();
  same('ctrl_enter_runs_sql', await page.eval(() => document.querySelectorAll('[data-testid=sql-result] tbody tr:not(.spacer)').length), 7);
  await page.eval(() => document.querySelectorAll('[data-testid=sql-result] tbody tr:not(.spacer) td .link')[6].click());
  await page.idle();
  const state = await page.state(), ts = BASE + 62n * MS;
  check('a_cell_leads_to_the_time_line', BigInt(state.from) <= ts && BigInt(state.to) >= ts + 7n * MS, [state.from, state.to]);
  await page.eval(() => [...document.querySelectorAll('[data-testid=sql-result] button')].find((b) => b.textContent === 'Show as row').click());
  await page.idle();
  check('a_result_becomes_a_row', (await page.text('#names')).includes('Query 1'));
  await page.eval(() => { const i = document.querySelector('[data-testid=sql-input]'); i.value = ''; i.focus(); });
  await page.type('select nonsense from slice');
  await page.press('Enter', 'ctrl');
  await page.idle();
  check('an_error_of_sql_is_shown', (await page.text('[data-testid=sql-result]')).includes('nonsense'), await page.text('[data-testid=sql-result]'));
  await page.eval(() => { const i = document.querySelector('[data-testid=sql-input]'); i.value = ''; i.focus(); });
  await page.type('select na');
  await page.until(() => document.querySelector('.completion li'));
  await page.eval(() => document.activeElement.blur());
}

async function rows(page) {
  await whole(page);
  const names = (s) => s.rows.map((r) => r.name);
  await page.eval(() => document.querySelector('[data-testid=timeline]').focus());
  await page.press('l');
  await page.type('pool 3');
  await page.idle();
  check('the_filter_filters', names(await page.state()).every((n) => /pool .*3/.test(n)) && (await page.state()).rows.length > 0, names(await page.state()));
  await page.eval(() => { const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input')); document.querySelector('[data-testid=timeline]').focus(); });
  await page.idle();
  const at = await pointOf(page, 'main', BASE + 100n * MS);
  await page.mouse('mouseMoved', at.x, at.y);
  await page.idle();
  await page.press('p');
  await page.idle();
  let state = await page.state();
  check('p_pins_the_row', state.rows[0].name === 'main' && state.rows[0].pinned && state.rows[0].y === 0, state.rows[0]);
  await page.until(() => location.hash.includes('pin='));
  await page.mouse('mouseMoved', at.x, (await page.box('[data-testid=timeline]')).y + 10);
  await page.idle();
  await page.press('p');
  await page.idle();
  check('p_unpins_it', !(await page.state()).rows.some((r) => r.pinned));
  const group = await page.eval(() => [...document.querySelectorAll('.name.group')].find((n) => n.textContent.includes('alpha')).dataset.key);
  await page.clickOn(`.name.group[data-key="${group}"]`);
  await page.idle();
  check('a_click_folds_the_group', !names(await page.state()).includes('main'));
  await page.eval((key) => document.querySelector(`.name.group[data-key="${key}"]`).focus(), group);
  await page.press('Enter');
  await page.idle();
  check('enter_unfolds_it', names(await page.state()).includes('main'));
  check('what_is_empty_is_folded_away', !names(await page.state()).includes('asleep'));
  await page.press('ArrowDown');
  await page.idle();
  check('arrows_move_along_the_tree', await page.eval(() => document.activeElement.classList.contains('row')));
  const hidden = await page.eval(() => document.activeElement.querySelector('.label').textContent);
  await page.press('h');
  await page.idle();
  check('h_hides_the_row', !names(await page.state()).includes(hidden), hidden);
  await page.eval(() => document.querySelector('[data-testid=timeline]').focus());
  await page.press(':');
  await page.type('hidden rows');
  await page.press('Enter');
  await page.idle();
  state = await page.state();
  check('the_palette_runs_commands', names(state).includes(hidden), names(state));
}

async function marks(page, file) {
  await whole(page);
  const at = await pointOf(page, 'main', BASE + 203n * MS);
  await page.click(at.x, at.y);
  await page.idle();
  await page.press('m');
  await page.type('look at this');
  await page.idle();
  same('m_marks_the_selection', (await page.state()).marks, 1);
  const kept = fs.existsSync(`${file}.notes.json`) ? JSON.parse(fs.readFileSync(`${file}.notes.json`)) : {};
  check('marks_are_kept_beside_the_trace', JSON.stringify(kept).includes('look at this'), kept);
  await page.eval(() => document.querySelector('[data-testid=timeline]').focus());
  await page.press('?');
  check('question_mark_is_help', await page.until(() => document.querySelector('#dialog').open && document.querySelector('#dialog').textContent.includes('Zoom in')));
  await page.press('Escape');
  await page.until(() => !document.querySelector('#dialog').open);
  const before = await page.eval(() => document.documentElement.dataset.theme);
  await page.clickOn('#theme');
  check('the_theme_changes', before === 'light' && (await page.eval(() => document.documentElement.dataset.theme)) === 'dark');
}

async function exports(page, browser, tmp, stave) {
  const folder = `${tmp}/downloads`;
  fs.mkdirSync(folder);
  await browser.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  await page.eval(() => document.querySelector('[data-testid=timeline]').focus());
  const choose = async (command) => {
    await page.press(':');
    await page.until(() => document.activeElement.matches('#palette input'));
    await page.type(command);
    await page.until((text) => document.activeElement.value === text, command);
    await page.press('Enter');
  };
  const saved = async (command, suffix) => {
    await choose(command);
    for (let i = 0; i < 1200; i++) {
      const name = fs.readdirSync(folder).find((f) => f.endsWith(suffix));
      if (name && fs.statSync(`${folder}/${name}`).size > 0) return fs.readFileSync(`${folder}/${name}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return Buffer.alloc(0);
  };
  const png = await saved('as PNG', '.png');
  check('the_view_is_exported_as_png', png.length > 5000 && png.subarray(1, 4).toString() === 'PNG', [png.length, await page.eval(() => [document.activeElement.outerHTML.slice(0, 200), document.querySelector('#banner').textContent])]);
  await page.eval(() => { HTMLCanvasElement.prototype.toBlob = (give) => give(null); });
  await choose('as PNG');
  check('a_png_that_cannot_be_made_is_said', await page.until(() => document.querySelector('#banner').textContent.includes('as SVG')));
  const svg = (await saved('as SVG', '.svg')).toString();
  check('the_view_is_exported_as_svg', svg.startsWith('<svg ') && svg.endsWith('</svg>') && svg.includes('main'), svg.slice(0, 200));
  const cut = await saved('as a trace', '.pftrace');
  fs.writeFileSync(`${tmp}/cut.pftrace`, cut);
  const count = execFileSync(stave, ['query', '-q', `${tmp}/cut.pftrace`, "select count(*) from slice where name = 'step'"], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  check('the_window_is_exported_as_a_trace', /\b\d+\b/.test(count) && Number(/\d+/.exec(count)[0]) > 0, count);
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/keys.txt`;
  makeTrace(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  check('the_token_leaves_the_address_bar', !(await page.eval(() => location.href)).includes('token'));
  await keys(page);
  await mouse(page);
  await slices(page, viewer);
  await areas(page, viewer);
  await search(page);
  await sql(page);
  await rows(page);
  await marks(page, file);
  await exports(page, browser, tmp, process.env.STAVE);
  await clean('keys', page, viewer.origin);
  same('it_ends_with_0_on_sigterm', await viewer.stop(), 0);
});
