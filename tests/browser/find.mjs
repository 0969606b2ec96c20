// The search over names, keys and values of arguments, rows and processes: typed, and compared with SQL.
import fs from 'node:fs';
import { check, clean, open, run, same, stamp } from './harness.mjs';

function makeReads(file) {
  const lines = ['# stave text 1', 'clock boottime', 'track #1 process uuid=0x1 pid=4711 name="trainer"', 'track #2 thread uuid=0x2 parent=#1 pid=4711 tid=4711 name="main"',
    'track #3 process uuid=0x3 pid=4712 name="evaluator of shard_13"', 'track #4 thread uuid=0x4 parent=#3 pid=4712 tid=4712 name="main"'];
  for (let i = 0; i < 600; i++) {
    const t = BigInt(i) * 1000000n;
    lines.push(`${stamp(t)} slice #2 "read" cat="io" dur=${stamp(BigInt(1000 + (i * 7919) % 600000))} {path="/data/Shard_${i % 30}" bytes=${4096 + i % 5} more={list=["a${i % 11}"]}}`);
    if (i % 10 === 0) lines.push(`${stamp(t + 700000n)} slice #4 "shard_13 is whole" cat="app" dur=0.000000100`);
  }
  fs.writeFileSync(file, lines.join('\n') + '\n');
}

/** Typing replaces the example of the SQL pane; Alt and arrows lead through earlier statements. */
async function desk(page) {
  await page.press('q');
  await page.until(() => document.activeElement && document.activeElement.dataset.testid === 'sql-input');
  const value = () => page.eval(() => document.querySelector('[data-testid=sql-input]').value);
  const ask = async (sql) => {
    await page.type(sql);
    await page.press('Enter', 'ctrl');
    await page.until(() => document.querySelector('[data-testid=sql-result] .table'));
    await page.eval(() => document.querySelector('[data-testid=sql-input]').select());
  };
  await ask('select 1 as one');
  same('typing_replaces_the_example', await value(), 'select 1 as one');
  await ask('select 2 as two');
  await page.press('ArrowUp', 'alt');
  await page.press('ArrowUp', 'alt');
  same('earlier_statements_come_back', await value(), 'select 1 as one');
  await page.press('ArrowDown', 'alt');
  same('and_later_ones', await value(), 'select 2 as two');
}

/** The flame graph of everything: inverted, the self times of a name are together at the top. */
async function area(page, viewer) {
  await page.eval(() => document.querySelector('[data-testid=timeline]').focus());
  await page.press('a', 'ctrl');
  await page.until(() => document.querySelector('[data-testid=flame-invert]'));
  await page.idle();
  const wide = async () => (await page.box('.flame canvas')).width, before = await wide();
  await page.clickOn('[data-testid=flame-tall]');
  await page.until((w) => document.querySelector('.flame canvas').getBoundingClientRect().width > w, before);
  check('the_flame_graph_has_full_width', true);
  await page.clickOn('[data-testid=flame-invert]');
  const canvas = await page.box('.flame canvas');
  await page.mouse('mouseMoved', canvas.x + 20, canvas.y + 30);
  await page.until(() => / self /.test(document.getElementById('tooltip').textContent));
  const text = await page.eval(() => document.getElementById('tooltip').textContent);
  const [[name]] = await viewer.sql('select name from slice group by name order by sum(self_dur) desc limit 1');
  check('inverted_the_largest_self_time_is_first', text.startsWith(name), text);
}

await run(async ({ browser, start, tmp }) => {
  const file = `${tmp}/reads.txt`;
  makeReads(file);
  const viewer = await start(file), page = await open(browser, viewer.url);
  const sent = await page.eval(() => performance.getEntries().filter((e) => e.encodedBodySize && !e.name.includes('/api/')).reduce((sum, e) => sum + e.encodedBodySize, 0));
  check('the_page_has_at_most_400_kB', sent > 100000 && sent <= 400000, String(sent));
  const type = async (text) => {
    await page.press('/');
    await page.eval(() => { document.getElementById('search').value = ''; });
    await page.type(text);
    await page.until((t) => { const title = document.querySelector('#pane-search .title, #pane-search .bar:first-child .title'); return title && title.textContent.endsWith(`“${t}”`); }, text);
    await page.idle();
  };
  const total = () => page.eval(() => (document.querySelector('#pane-search .title').textContent.match(/^([\d\u2009\u202f ]+) slices/) || ['', '0'])[1].replace(/\D/g, ''));
  const count = async (where) => (await viewer.sql(`select count(distinct s.id) from slice s left join args a using (arg_set_id) where ${where}`))[0][0];
  await type('shard_13');
  same('values_of_arguments_and_names', await total(), await count("s.name like '%shard\\_13%' escape '\\' or a.string_value like '%shard\\_13%' escape '\\'"));
  same('rows_and_processes', await page.eval(() => [...document.querySelectorAll('[data-testid=search-rows] button.link')].map((b) => b.textContent)), ['evaluator of shard_13 (pid 4712)']);
  check('says_which_argument', await page.eval(() => [...document.querySelectorAll('[data-testid=search-table] td')].some((td) => td.textContent === 'path = /data/Shard_13')));
  await page.eval(() => [...document.querySelectorAll('[data-testid=search-table] th button')].find((b) => b.textContent.startsWith('Duration')).click());
  const first = await page.eval(() => document.querySelector('[data-testid=search-table] tbody tr:not(.spacer) button.link').textContent);
  same('the_table_is_sorted', first, (await viewer.sql("select s.name from slice s left join args a using (arg_set_id) where s.name glob 'shard_13*' or a.string_value like '%Shard\\_13' escape '\\' order by s.dur desc limit 1"))[0][0]);
  await type('4098');
  same('numbers_are_whole', await total(), await count('a.int_value = 4098'));
  await type('*Shard_2?');
  same('globs', await total(), await count("a.string_value glob '*Shard_2?'"));
  await type('byt');
  same('keys', await total(), await count("a.key like '%byt%'"));
  await type('a10');
  same('values_within_lists', await total(), await count("a.string_value like '%a10%'"));
  await page.press('Enter');
  await page.until(() => window.stave.state().selection);
  const [[id]] = await viewer.sql("select s.id from slice s join args a using (arg_set_id) where a.string_value = 'a10' order by s.ts limit 1");
  same('enter_goes_to_the_first', (await page.state()).selection.id, id);
  // Enter at once, before the list is there: to the first argument, too
  await page.press('Escape');
  await page.press('Escape');
  await page.press('/');
  await page.eval(() => { const input = document.getElementById('search'); input.value = 'Shard_29'; input.dispatchEvent(new Event('input', { bubbles: true })); input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', code: 'Enter', bubbles: true })); });
  const [[soon]] = await viewer.sql("select s.id from slice s join args a using (arg_set_id) where a.string_value = '/data/Shard_29' order by s.ts limit 1");
  await page.until((one) => window.stave.state().selection?.id === one, soon);
  check('enter_does_not_wait_for_the_list', true);
  await type('no such thing');
  same('nothing_matches', await total(), '0');
  // rows from the palette
  await page.press('Escape');
  await page.press(':');
  await page.type('row shard_13 main');
  await page.until(() => document.querySelectorAll('#palette li').length === 1);
  same('the_palette_has_rows', await page.text('#palette li span'), 'Row: main · evaluator of shard_13 (pid 4712)');
  await page.press('Enter');
  await page.idle();
  check('and_goes_there', await page.eval(() => !document.getElementById('palette').open));
  await desk(page, viewer);
  await area(page, viewer);
  await clean('find', page, viewer.origin);
});
