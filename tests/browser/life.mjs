// Two tabs, reload, a viewer that is killed and comes back, tokens that are wrong, traces with nothing in them.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { check, clean, open, run, same } from './harness.mjs';

const good = '# stave text 1\nclock boottime\ntrack #1 process uuid=0x1 pid=7 name="p"\ntrack #2 thread uuid=0x2 parent=#1 pid=7 tid=7 name="main"\n'
  + Array.from({ length: 500 }, (_, i) => `1.${String(i * 1000000).padStart(9, '0')} slice #2 "s${i % 7}" dur=0.000600000`).join('\n') + '\n';
const banner = () => (document.querySelector('#banner').hidden ? '' : document.querySelector('#banner').textContent);

async function tabs(browser, viewer) {
  const [a, b] = [await open(browser, viewer.url), await open(browser, viewer.url)];
  await a.eval(() => window.stave.go('1100000000', '1200000000'));
  await b.eval(() => window.stave.go('1300000000', '1300900000'));
  await Promise.all([a.idle(), b.idle()]);
  const count = (page) => page.eval(() => { const s = window.stave.state(); return [...Array(s.width).keys()].filter((x) => window.stave.pick(x, s.rows[0].y + 10).count > 0).length; });
  check('two_tabs_have_their_own_windows', (await a.state()).from === '1100000000' && (await b.state()).from === '1300000000');
  check('both_tabs_have_data', (await count(a)) > 100 && (await count(b)) > 100);
  return [a, b];
}

async function reload(page, viewer) {
  const before = await page.state();
  const box = await page.box('[data-testid=timeline]');
  await page.click(box.x + 400, box.y + before.rows[0].y + 10);
  await page.idle();
  const chosen = (await page.state()).selection;
  await page.until((slice) => location.hash.includes(`slice=${slice}`), chosen.slice);
  const address = await page.eval(() => location.hash);
  await page.reload();
  await page.idle();
  const after = await page.state();
  same('reload_keeps_the_view', [after.from, after.to, after.selection && after.selection.slice], [before.from, before.to, chosen.slice]);
  const shared = await open(page.browser, `${viewer.url}&${address.slice(1)}`);
  const there = await shared.state();
  same('an_address_holds_the_view', [there.from, there.to, there.selection && there.selection.slice], [before.from, before.to, chosen.slice]);
}

async function killed(browser, viewer, page, start, file) {
  await viewer.stop('SIGKILL');
  await page.hold('s', 100);
  await page.until(banner);
  check('a_lost_viewer_is_said', /lost/.test(await page.eval(banner)), await page.eval(banner));
  check('the_picture_stays', (await page.eval(() => { const c = document.querySelector('[data-testid=timeline]'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })) > 3);
  const again = await start(file, '--port', viewer.port);
  await page.until(() => /token/.test(document.querySelector('#banner').textContent));
  check('a_restarted_viewer_asks_for_its_token', (await page.state()).status === 'token');
  await page.eval((token) => { location.hash = `#token=${token}`; }, again.token);
  await page.until(() => document.querySelector('#banner').hidden);
  await page.idle();
  check('with_the_new_token_it_goes_on', (await page.state()).status === 'ready' && !(await page.eval(() => location.href)).includes('token'));
  await page.hold('w', 100);
  await page.idle();
  return again;
}

/** A recording that grows: the page follows it until its end, and keeps what is selected. */
async function follow(browser, start, tmp) {
  const name = `${tmp}/growing.txt`, part = `${name}.part`, lines = good.split('\n');
  fs.writeFileSync(part, lines.slice(0, 204).join('\n') + '\n');
  const viewer = await start(name, '--follow'), page = await open(browser, viewer.url), before = await page.state();
  const box = await page.box('[data-testid=timeline]');
  await page.click(box.x + 30, box.y + before.rows[0].y + 10);
  await page.idle();
  const chosen = (await page.state()).selection;
  fs.appendFileSync(part, lines.slice(204, 400).join('\n') + '\n');
  await page.until((last) => BigInt(window.stave.state().last) > BigInt(last), before.last);
  await page.idle();
  let state = await page.state();
  check('a_growing_trace_is_followed', BigInt(state.to) > BigInt(state.last) && BigInt(state.from) <= BigInt(state.first), [state.to, state.last]);
  same('the_selection_stays', [state.selection && state.selection.name, state.selection && state.selection.ts], [chosen.name, chosen.ts]);
  await page.eval(() => window.stave.go('1010000000', '1020000000'));
  await page.idle();
  fs.appendFileSync(part, lines.slice(400).join('\n'));
  fs.renameSync(part, name);
  await page.until((last) => BigInt(window.stave.state().last) > BigInt(last) && !document.querySelector('#badges').textContent.includes('live'), state.last);
  await page.idle();
  state = await page.state();
  same('the_window_of_the_user_stays', [state.from, state.to], ['1010000000', '1020000000']);
  await clean('follow', page, viewer.origin);
}

async function compare(browser, start, tmp, file) {
  const other = `${tmp}/other.txt`;
  fs.writeFileSync(other, good.replaceAll('dur=0.000600000', 'dur=0.000300000').replaceAll('"s3"', '"new"'));
  const viewer = await start([file, other], '--compare'), page = await open(browser, viewer.url);
  const labels = await page.eval(() => [...document.querySelectorAll('.name.row')].sort((a, b) => parseFloat(a.style.transform.slice(11)) - parseFloat(b.style.transform.slice(11))).map((n) => [n.querySelector('.label').dataset.side, n.querySelector('.label').textContent]));
  same('rows_of_both_traces_lie_beside_each_other', labels, [['A', 'main'], ['B', 'main']]);
  same('both_files_are_named', await page.text('#trace-name'), 'A · life.txtB · other.txt');
  await page.clickOn('#tab-compare');
  const rows = await page.until(() => { const r = [...document.querySelectorAll('[data-testid=compare-table] tbody tr:not(.spacer)')].map((tr) => [...tr.children].map((td) => td.textContent)); return r.length ? r : null; });
  const row = (name) => rows.find((r) => r[0] === name);
  same('differences_are_listed', [row('s0')[1], row('s0')[2], row('s0')[8], row('s3')[8], row('new')[8]], ['72', '72', '−50.0 %', 'only in A', 'only in B']);
  await clean('compare', page, viewer.origin);
  await aligned(browser, await start([file, other], '--compare', '--align', 's2'));
}

/** The event of --align is at 0, what was before it at negative times. */
async function aligned(browser, viewer) {
  const begins = (page) => page.eval(() => { const dt = [...document.querySelectorAll('#pane-slice dt')].find((e) => e.textContent === 'Begins'); return dt.nextSibling.textContent; });
  for (const [name, wanted] of [['s2', '0.000\u2009000\u2009000 s'], ['s0', '−0.002\u2009000\u2009000 s']]) {
    const { hits } = await viewer.api('/api/search', { text: name, limit: 1 });
    const page = await open(browser, `${viewer.url}&slice=${hits[0].slice}&tab=slice`);
    await page.until((slice) => window.stave.state().selection?.slice === slice, hits[0].slice);
    same(`with_align_${name}_begins_at`, await begins(page), wanted);
    await clean(`align_${name}`, page, viewer.origin);
  }
}

/** A file that is replaced under the viewer, and one that is cut off. */
async function files(browser, start, tmp, file) {
  const whole = `${tmp}/whole.pftrace`;
  execFileSync(process.env.STAVE, ['convert', '-q', file, '-o', whole]);
  const viewer = await start(whole), page = await open(browser, viewer.url), bytes = fs.readFileSync(whole);
  fs.writeFileSync(`${tmp}/new.pftrace`, bytes.subarray(0, 100));
  fs.renameSync(`${tmp}/new.pftrace`, whole);
  await page.eval(() => window.stave.go('1100000000', '1110000000'));
  await page.idle();
  check('a_replaced_file_does_no_harm', await page.eval(() => { const s = window.stave.state(); return [...Array(s.width).keys()].some((x) => window.stave.pick(x, s.rows[0].y + 10).count > 0); }));
  fs.writeFileSync(`${tmp}/cut.pftrace`, bytes.subarray(0, Math.floor(bytes.length * 0.6)));
  const cut = await start(`${tmp}/cut.pftrace`), short = await open(browser, cut.url);
  check('damage_is_said', /note/.test(await short.text('#badges')) && (await short.state()).rows.length === 1, await short.text('#badges'));
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/life.txt`;
  fs.writeFileSync(file, good);
  const viewer = await start(file), [first] = await tabs(browser, viewer);
  await reload(first, viewer);
  await clean('tab', first, viewer.origin);

  const wrong = await browser.page();
  await wrong.goto(`${viewer.origin}/#token=0123456789abcdef0123456789abcdef`);
  same('a_wrong_token_is_said', [await wrong.idle(), /token is missing or wrong/.test(await wrong.text('#cover'))], ['token', true]);
  const none = await browser.page();
  await none.goto(`${viewer.origin}/`);
  same('no_token_is_said', [await none.idle(), /token is missing or wrong/.test(await none.text('#cover'))], ['token', true]);

  await compare(browser, start, tmp, file);
  await files(browser, start, tmp, file);
  await follow(browser, start, tmp);
  await killed(browser, viewer, first, start, file);

  fs.writeFileSync(`${tmp}/empty.txt`, '# stave text 1\nclock boottime\ntrack #1 process uuid=0x1 pid=7 name="p"\n');
  const empty = await start(`${tmp}/empty.txt`), nothing = await open(browser, empty.url);
  check('an_empty_trace_is_said', await nothing.eval(() => !document.querySelector('#empty').hidden));
  await clean('empty', nothing, empty.origin);
});
