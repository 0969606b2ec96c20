// The SQL pane: a text with completion, its result as a table whose cells lead to the time line, a
// result as a row.

import { Completion } from './completion.js';
import { btn, download, el, link } from './dom.js';
import { LocalCounter, LocalRow } from './localrow.js';
import { Table } from './table.js';
import { formatCount, parseWhole } from './time.js';

const FIRST = 'select name, count(*) as n, sum(dur) as total, max(dur) as longest\nfrom '
  + 'slice group by name order by total desc limit 50';
const LIMIT = 10000, COUNTERS_MOST = 20;
const KEYS = /^(ts|dur|id|slice|.*_id|.*_row|.*_line)$/i; // columns that are no values
const ODD = { Inf: Infinity, '-Inf': -Infinity };
const numberOf = (text) => ODD[text] ?? Number(text);
const KEY = 'stave.sql', MOST = 100; // statements that are kept

export class SqlPane {
  constructor(app, box) {
    this.app = app;
    box.classList.add('columns');
    this.input = el('textarea',
      { 'data-testid': 'sql-input', 'aria-label': 'SQL', spellcheck: 'false', autocomplete: 'off',
        autocapitalize: 'off' });
    this.input.value = FIRST;
    this.runButton =
      el('button', { type: 'button', class: 'main', 'data-testid': 'sql-run', text: 'Run',
        title: 'Ctrl+Enter', onclick: () => this.run() });
    this.state = el('span', { class: 'aside', role: 'status' });
    this.result = el('div',
      { class: 'sql-right', 'data-testid': 'sql-result', 'aria-live': 'polite' });
    const left = el('div', { class: 'sql-left' }, this.input,
      el('div', { class: 'bar' }, this.runButton, el('kbd', { text: 'Ctrl+Enter' }),
        el('span', { class: 'aside', text: 'Alt+↑ earlier ones' }), this.state));
    box.append(el('div', { class: 'sql' }, left, this.result));
    this.hint();
    this.completion = new Completion(this.input, left,
      async () => (await app.transport.json('GET', '/api/tables'))
        .rows.map((row) => ({ name: row[0], columns: String(row[1]).split(' ') })));
    this.isExample = true;
    this.input.addEventListener('input', () => { this.isExample = false; });
    this.input.addEventListener('focus', () => { if (this.isExample) this.input.select(); });
    this.history = JSON.parse(localStorage.getItem(KEY) || '[]');
    this.at = this.history.length;
    this.input.addEventListener('keydown', (event) => {
      if (event.altKey && ['ArrowUp', 'ArrowDown'].includes(event.key)) {
        event.preventDefault();
        event.stopPropagation();
        this.recall(event.key === 'ArrowUp' ? -1 : 1);
      }
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.run();
      }
    });
    this.turn = 0;
    this.rows = 0;
  }

  hint() {
    this.result.replaceChildren(
      el('p', { class: 'hint',
        text: 'The tables are those of “stave query”. Cells of ts, dur, id and slice '
          + 'lead to the time line. A result with ts and dur can become a row, one '
            + 'with ts and a number a counter.' }));
  }

  /** Statements that ran before, the newest last. */
  recall(by) {
    const next = this.at + by;
    if (next < 0 || next > this.history.length) return;
    if (this.at === this.history.length) this.draft = this.input.value;
    this.at = next;
    this.isExample = false;
    this.input.value = next === this.history.length ? this.draft : this.history[next];
  }

  remember(sql) {
    this.history = [...this.history.filter((one) => one !== sql), sql].slice(-MOST);
    this.at = this.history.length;
    localStorage.setItem(KEY, JSON.stringify(this.history));
  }

  async run() {
    const sql = this.input.value, turn = ++this.turn, { app } = this;
    if (!sql.trim()) return;
    this.completion.close();
    this.remember(sql);
    this.state.textContent = 'running …';
    this.runButton.disabled = true;
    try {
      const answer = await app.wait(app.transport.json('POST', '/api/sql', { sql, limit: LIMIT }));
      if (turn !== this.turn) return;
      if (answer.error) this.fail(answer.error); else this.show(answer);
    } catch (error) {
      if (turn === this.turn) this.fail(error.message);
    } finally {
      this.runButton.disabled = false;
    }
  }

  fail(message) {
    this.state.textContent = '';
    this.result.replaceChildren(el('p', { class: 'error', text: message }));
    this.app.announce('The query failed: ' + message);
  }

  show(answer) {
    const { app } = this, columns = answer.columns.map((name, i) => this.column(answer, name, i));
    this.table = new Table(columns, answer.rows, { label: 'Result' });
    const n = answer.rows.length;
    const text = `${formatCount(n)} `
      + `${n === 1 ? 'row' : 'rows'}${answer.more ? ', more were left out' : ''}`
      + `${answer.ms === undefined ? '' : ` · ${Number(answer.ms).toFixed(1)} ms`}`;
    this.state.textContent = '';
    const bar = el('div', { class: 'bar' }, el('span', { class: 'title', text }));
    const places = this.places(answer.columns, answer.types);
    const tools = [this.table.copyButton(app, { class: 'plain push' }),
      btn('Save as CSV', () => download(new Blob([this.table.csv()], { type: 'text/csv' }),
        'query.csv'))];
    if (places.ts >= 0 && (places.dur >= 0 || places.value >= 0) && n) {
      const act = places.dur >= 0 ? () => this.asRow(answer, places)
        : () => this.asCounters(answer, places);
      tools.unshift(btn('Show as row', act, { class: 'plain push', 'data-testid': 'sql-as-row' }));
      tools[1].classList.remove('push');
    }
    bar.append(...tools);
    this.result.replaceChildren(bar, this.table.box);
    app.announce(text);
  }

  /** Which columns mean what. A counter's value is the column `value`, else the first of
   * numbers. */
  places(columns, types = []) {
    const at = (name) => columns.findIndex((c) => c.toLowerCase() === name);
    const places = { ts: at('ts'), dur: at('dur'), name: at('name'), id: at('id'),
      slice: at('slice') };
    const isValue = (type, i) => ['int', 'real', 'mixed'].includes(type) && !KEYS.test(columns[i]);
    return { ...places, value: at('value') >= 0 ? at('value') : types.findIndex(isValue) };
  }

  column(answer, name, i) {
    const number = answer.types && (answer.types[i] === 'int' || answer.types[i] === 'real');
    const column = {
      title: name, number, text: (row) => row[i],
      key: (row) => (row[i] === null ? null : answer.types && answer.types[i] === 'int'
        && parseWhole(row[i]) !== null ? parseWhole(row[i]) : number ? Number(row[i]) : row[i]),
    };
    const places = this.places(answer.columns);
    if (['ts', 'dur', 'id', 'slice', 'slice_id'].includes(name.toLowerCase())) {
      column.cell = (row, cell) => {
        if (row[i] === null || parseWhole(row[i]) === null) cell.textContent = row[i] === null
          ? 'null' : row[i];
        else cell.append(link(row[i], () => this.jump(name.toLowerCase(), row, i, places),
          'Show on the time line'));
      };
    }
    return column;
  }

  /** A cell leads to its slice, or to its time. */
  async jump(name, row, i, places) {
    const { app } = this;
    if (name === 'slice') return app.select(Number(row[i]), { tab: false });
    if (name === 'id' || name === 'slice_id') return app.selectId(row[i],
      places.ts >= 0 ? parseWhole(row[places.ts]) : null);
    const ts = places.ts >= 0 ? parseWhole(row[places.ts]) : null;
    if (ts === null) return undefined;
    const dur = places.dur >= 0 ? parseWhole(row[places.dur]) : null;
    if (places.id >= 0 && parseWhole(row[places.id]) !== null
      && await app.selectId(row[places.id], ts)) return undefined;
    return app.showTime(ts, ts + (dur !== null && dur > 0n ? dur : 0n));
  }

  /** A counter for each name. */
  asCounters(answer, { ts, value, name }) {
    const { app } = this, found = new Map();
    for (const row of answer.rows) {
      const at = parseWhole(row[ts]), what = name >= 0 ? String(row[name]) : '';
      if (at === null || row[value] === null) continue;
      if (!found.has(what)) found.set(what, []);
      found.get(what).push({ ts: at, value: numberOf(row[value]) });
    }
    if (!found.size || found.size > COUNTERS_MOST) {
      this.state.textContent = found.size
        ? `These are ${found.size} names: more than ${COUNTERS_MOST} rows.`
        : 'No row of the result has a whole number as ts and a value.';
      return;
    }
    const title = answer.columns[value];
    for (const [what, points] of found) {
      this.rows++;
      app.rows.addLocal(what || `${title} (query ${this.rows})`, 0, new LocalCounter(points));
    }
    app.timeline.scrollTo(0);
    const what = found.size === 1 ? 'The counter is a row' : `${found.size} counters are rows`;
    app.announce(`${what} now`);
    app.invalidate();
  }

  asRow(answer, places) {
    const { app } = this;
    const local = new LocalRow(answer.rows, places, (text) => app.names.styleOf(text));
    if (!local.n) {
      this.state.textContent = 'No row of the result has whole numbers as ts and dur.';
      return;
    }
    const node = app.rows.addLocal(`Query ${++this.rows}`, local.lines.length, local);
    app.timeline.scrollTo(0);
    app.announce(`${node.name} is a row now`);
    app.invalidate();
  }
}
