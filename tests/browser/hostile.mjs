// Texts from a trace, a query, notes or an address are shown as texts: no script runs, no request leaves the machine.
import fs from 'node:fs';
import { check, clean, open, run, same } from './harness.mjs';

const EVIL = [
  '<img src=x onerror="window.hacked=1">', '<script>window.hacked=1</script>', '"><svg onload=window.hacked=1>', "';window.hacked=1;//", 'javascript:window.hacked=1',
  '<iframe src="http://example.org/"></iframe>', '<style>@import "http://example.org/x.css";</style>', '<a href="http://example.org" ping="http://example.org">x</a>',
  '=cmd|\'/c calc\'!A1', '__proto__', 'constructor', '\u202Egnp.exe', '\u0000\u0007\u001B[31m', '{{7*7}}${7*7}', '&lt;b&gt;&#60;', 'x'.repeat(3000), '<base href="http://example.org/">',
];

const quote = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => c);

function makeTrace(file) {
  const events = [], process = { ph: 'M', pid: 1, tid: 1, name: 'process_name', args: { name: EVIL[0] } };
  events.push(process, { ph: 'M', pid: 1, tid: 1, name: 'thread_name', args: { name: EVIL[1] } }, { ph: 'M', pid: 1, tid: 2, name: 'thread_name', args: { name: EVIL[2] } });
  EVIL.forEach((text, i) => {
    events.push({ ph: 'X', pid: 1, tid: 1, ts: i * 1000, dur: 900, name: text, cat: EVIL[(i + 1) % EVIL.length], args: { [text.slice(0, 200)]: EVIL[(i + 2) % EVIL.length], deep: { a: [text] } } });
    events.push({ ph: 'C', pid: 1, ts: i * 1000, name: text.slice(0, 100), args: { value: i } });
    events.push({ ph: 'i', pid: 1, tid: 2, ts: i * 1000 + 10, name: text, s: 't' });
  });
  fs.writeFileSync(file, `{"traceEvents":[${events.map(quote).join(',\n')}]}`);
}

const notes = { version: 1, note: EVIL[0], marks: [{ ts: '1000000', text: EVIL[0] }, { ts: EVIL[1], text: {} }, null, 7, { ts: '2000000', to: EVIL[3], text: EVIL[2] }], __proto__: { marks: 1 } };

async function everything(page) {
  await page.eval(async () => {
    const state = window.stave.state();
    for (const row of state.rows) for (let x = 0; x < state.width; x += 40) window.stave.pick(x, row.y + 10);
  });
  const box = await page.box('[data-testid=timeline]'), { rows } = await page.state();
  for (const row of rows.slice(0, 4)) {
    for (let i = 0; i < 8; i++) await page.mouse('mouseMoved', box.x + 30 + i * box.width / 8, box.y + row.y + 10);
    await page.click(box.x + box.width / 3, box.y + row.y + 10);
    await page.idle();
  }
  await page.press('a', 'ctrl');
  await page.idle();
  await page.press('/');
  await page.type('<');
  await page.press('Enter');
  await page.idle();
  await page.press('Escape');
  await page.press('q');
  await page.eval((evil) => { document.querySelector('[data-testid=sql-input]').value = `select name as "${evil[0].replaceAll('"', '""')}", '${evil[1]}' as ts, '${evil[2]}' as dur, '${evil[4]}' as id from slice`; }, EVIL);
  await page.clickOn('[data-testid=sql-run]');
  await page.idle();
  await page.eval(() => document.querySelectorAll('[data-testid=sql-result] button').forEach((b) => b.click()));
  await page.idle();
  await page.eval(() => document.querySelector('#tab-marks').click());
  await page.idle();
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/evil.json`;
  makeTrace(file);
  fs.writeFileSync(`${file}.notes.json`, JSON.stringify(notes));
  await browser.send('Browser.setDownloadBehavior', { behavior: 'deny' });
  const viewer = await start(file), page = await open(browser, viewer.url);
  const shown = await page.text('#names');
  check('names_are_shown_as_texts', shown.includes('<img src=x onerror') && shown.includes('<script>'), shown.slice(0, 300));
  await everything(page);
  check('results_are_shown_as_texts', (await page.text('[data-testid=sql-result]')).includes('<script>window.hacked=1</script>'));
  same('no_script_ran', await page.eval(() => [typeof window.hacked, typeof {}.marks, document.querySelectorAll('iframe, object, base, [onerror], [onload]').length]), ['undefined', 'undefined', 0]);
  same('marks_that_make_no_sense_are_left_out', (await page.state()).marks, 2);
  await clean('trace', page, viewer.origin);

  const fragments = [
    `from=${encodeURIComponent(EVIL[0])}&to=9&slice=1e9&pin=__proto__,99999,-1&hide=${encodeURIComponent(EVIL[1])}&filter=${encodeURIComponent(EVIL[0])}&tab=constructor`,
    'from=5&to=4&area=9..1@&y=-5&fold=g0,r99&%zz=%zz&=&&token', 'from=99999999999999999999&to=99999999999999999999&area=1..99999999999999999999@x&slice=-1', `filter=${'a'.repeat(20000)}`,
  ];
  for (const [i, fragment] of fragments.entries()) {
    const other = await open(browser, `${viewer.url}&${fragment}`);
    const state = await other.state();
    check(`fragment_${i}_leaves_a_view`, state.status === 'ready' && BigInt(state.to) > BigInt(state.from), [state.from, state.to]);
    same(`fragment_${i}_runs_nothing`, await other.eval(() => typeof window.hacked), 'undefined');
    await clean(`fragment_${i}`, other, viewer.origin);
    await browser.send('Target.closeTarget', { targetId: other.targetId });
  }
});
