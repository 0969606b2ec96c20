// The pane of the selected area: a tab for each kind of what is in it, with tables and flame
// graphs.

import { CHART, countersTable, drawChart, flowsTable, prepare, samplesTable, slicesTable,
  statesTable } from './areatables.js';
import { decodeWindow, recycle } from './codec.js';
import { btn, el } from './dom.js';
import { buildTree, Flame } from './flame.js';
import { Names } from './names.js';
import { formatCount, formatExact } from './time.js';

const CHARTS_MOST = 500;
const HINT = 'No area is selected. Drag over the time line, or press E for the visible window, '
  + 'Ctrl+A for everything.';

export class AreaPane {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.loads = 0;
    this.tab = '';
    box.classList.add('columns');
    this.clear();
  }

  get busy() {
    return this.loads > 0;
  }

  clear() {
    this.area = null;
    this.answer = null;
    this.box.replaceChildren(el('p', { class: 'hint', text: HINT }));
  }

  show(area) {
    this.area = area;
    this.load(area);
  }

  async load(area) {
    const { transport } = this.app;
    this.loads++;
    try {
      const answer = await transport.json('POST', '/api/area', {
        from: area.from.toString(), to: area.to.toString(), rows: area.rows, limit: 1000,
        tab: transport.tab + 'a', seq: ++transport.seq,
      });
      if (this.area === area) this.fill(area, answer);
    } catch (error) {
      if (this.area === area && error.status !== 409) {
        this.box.replaceChildren(el('p', { class: 'error', text: error.message }));
      }
    }
    this.loads--;
  }

  fill(area, answer) {
    this.answer = answer;
    const { app } = this, parts = this.parts(answer), n = area.rows.length;
    const title = `${formatCount(answer.slices)} slices in ${formatExact(area.to - area.from)}`;
    const names = `${answer.names.length} names${answer.more ? `, ${answer.more} more` : ''}`;
    this.copy = el('span', {});
    const path = 'What led to the end of what ends last in it, as a row (K)';
    const bar = el('div', { class: 'bar' },
      el('span', { class: 'title', text: title }),
      el('span', { class: 'aside', text: `${names} · ${n} ${n === 1 ? 'row' : 'rows'}` }),
      el('span', { class: 'push' }), this.copy,
      btn('Path', () => app.path.show(), { title: path }), btn('Fit', () => app.fit()),
      btn('Save as trace', () => app.saveCut(area.from, area.to)));
    this.box.replaceChildren(bar, ...parts.map((part) => part.box));
    this.tabs(parts, bar);
    app.announce(title);
  }

  /** What there is of each kind: {id, title, table, box, flame}. */
  parts(answer) {
    const { app } = this, rows = prepare(answer.names), { counters = [], flows = [] } = answer;
    const of = (kind) => rows.filter((row) => row.kind === kind);
    const sum = (list) => formatCount(list.reduce((n, row) => n + row.count, 0n));
    const slices = of('slice'), states = of('state'), samples = of('sample'), parts = [];
    const add = (id, title, table, flame = null) => {
      const box = flame ? el('div', { class: 'split' }, table.box, flame.box) : table.box;
      parts.push({ id, title, table, flame, box });
    };
    const flame = (kind) => new Flame(app, buildTree(answer.flame || [], rows, kind));
    const found = [samples, states, counters, flows].some((list) => list.length);
    if (slices.length || !found) {
      add('slices', `Slices ${sum(slices)}`, slicesTable(app, slices), flame(0));
    }
    if (states.length) add('states', `States ${sum(states)}`, statesTable(app, states));
    if (samples.length) {
      const graph = flame(2);
      add('samples', `Samples ${sum(samples)}`, samplesTable(app, rows, graph.root), graph);
    }
    if (counters.length) {
      const chart = (counter, cell) => this.chart(counter, cell);
      this.charts = new Map();
      add('counters', `Counters ${counters.length}`, countersTable(app, counters, chart));
      this.loadCharts(counters, parts[parts.length - 1].table);
    }
    if (flows.length) {
      add('flows', `Flows ${formatCount(answer.arrows)}`, flowsTable(app, flows));
    }
    return parts;
  }

  /** One at a time; the tab that was chosen stays so in the next area that has it. */
  tabs(parts, bar) {
    const choose = (part) => {
      this.shown = part;
      parts.forEach((other, i) => {
        other.box.hidden = other !== part;
        buttons[i].setAttribute('aria-checked', String(other === part));
      });
      this.copy.replaceChildren(part.table.copyButton(this.app, { class: 'plain' }));
      if (part.flame) part.flame.draw();
      part.table.fill(true);
    };
    const buttons = parts.map((part) => el('button', {
      type: 'button', role: 'radio', text: part.title, 'data-testid': `area-tab-${part.id}`,
      onclick: () => {
        this.tab = part.id;
        choose(part);
      },
    }));
    if (parts.length > 1) {
      const list = el('span', { class: 'choice', role: 'radiogroup', 'aria-label': 'Kind' });
      list.append(...buttons);
      bar.prepend(list);
    }
    choose(parts.find((part) => part.id === this.tab) || parts[0]);
  }

  /** The values of the area in as many pixels as a chart has. */
  async loadCharts(counters, table) {
    const { area, app } = this, { transport } = app, width = Math.round(CHART.width * app.dpr);
    const window = { from: area.from, to: area.to, width, left: 0, right: width };
    const rows = counters.slice(0, CHARTS_MOST).map((c) => [c.row, 0, 0]);
    this.loads++;
    try {
      const buffer = await transport.binary('/api/window', {
        ...window, from: area.from.toString(), to: area.to.toString(), rows,
        tab: `${transport.tab}c`, seq: ++transport.seq,
      });
      const reply = decodeWindow(buffer, window, new Names());
      if (this.area === area) {
        this.charts = reply.rows;
        table.fill(true);
      }
      recycle(reply);
    } catch {
      // the table has the values
    }
    this.loads--;
  }

  chart(counter, cell) {
    const { app } = this, data = this.charts.get(counter.row);
    const [width, height] = [CHART.width, CHART.height].map((v) => String(Math.round(v * app.dpr)));
    const canvas = el('canvas', { class: 'chart', width, height, 'aria-hidden': 'true' });
    cell.append(canvas);
    if (data) drawChart(canvas, counter, data, app);
  }

  redraw() {
    if (this.answer && this.area) this.fill(this.area, this.answer);
  }
}
