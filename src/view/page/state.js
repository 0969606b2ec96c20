// The state of the view in the URL's fragment.

import { readFragment, writeFragment } from './transport.js';
import { parseWhole } from './time.js';

const PAUSE_MS = 250;
const whole = (text) => (text !== undefined && /^-?\d{1,9}$/.test(text) ? Number(text) : null);

export class UrlState {
  constructor(app) {
    this.app = app;
    this.timer = null;
    this.last = '';
  }

  read() {
    return readFragment(location.hash);
  }

  /** Takes over what the fragment says; what makes no sense in this trace is left out. */
  apply() {
    const { app } = this, fields = this.read();
    const list = (key) => (fields.get(key) || '').split(',').filter(Boolean);
    app.rows.pins = list('pin').map(Number).filter((id) => app.rows.byId.has(id)).slice(0, 50);
    app.rows.hidden = new Set(list('hide').filter((key) => /^(gside[01]\.)?[gr]\w+$/.test(key)));
    for (const node of app.rows.nodes()) {
      if (list('fold').includes(node.key)) node.folded = true;
      if (list('open').includes(node.key)) node.folded = false;
    }
    app.rows.filter = (fields.get('filter') || '').slice(0, 200);
    app.filterInput.value = app.rows.filter;
    app.rows.layout();
    const from = parseWhole(fields.get('from')), to = parseWhole(fields.get('to'));
    if (from !== null && to !== null && to > from) app.view.place(from, to);
    else if (app.trace.active) app.view.fit(BigInt(app.trace.active[0]),
      BigInt(app.trace.active[1]));
    else app.view.place(app.view.whole.from, app.view.whole.to);
    const scroll = whole(fields.get('y'));
    if (scroll !== null) app.timeline.scrollTop = Math.max(0, scroll);
    this.selection(fields);
  }

  selection(fields) {
    const { app } = this, slice = whole(fields.get('slice'));
    const area = /^(-?\d{1,20})\.\.(-?\d{1,20})(?:@([\d,]*))?$/.exec(fields.get('area') || '');
    if (area && BigInt(area[2]) > BigInt(area[1])) {
      const ids = area[3] ? area[3].split(',').map(Number) : null;
      const rows = app.rows.allRequests().filter((r) => !ids || ids.includes(r[0]));
      if (rows.length) app.setArea({ from: BigInt(area[1]), to: BigInt(area[2]), rows, all: !ids },
        true);
    } else if (slice !== null && slice >= 0) app.select(slice, { show: false });
    app.pages.apply(fields.get('page'));
    const tab = fields.get('tab');
    if (['slice', 'area', 'search', 'sql', 'compare', 'marks'].includes(tab)) app.details.open(tab);
  }

  fields() {
    const { app } = this, { rows, view } = app, fields = new Map();
    fields.set('from', view.from.toString());
    fields.set('to', view.to.toString());
    fields.set('y', app.timeline.scrollTop ? String(Math.round(app.timeline.scrollTop)) : '');
    fields.set('pin', rows.pins.filter((id) => id >= 0).join(','));
    fields.set('hide', [...rows.hidden].join(','));
    const nodes = [...rows.nodes()].filter((n) => !n.local);
    const first = (n) => rows.startsFolded(n);
    fields.set('fold', nodes.filter((n) => n.folded && !first(n)).slice(0, 200).map((n) => n.key)
      .join(','));
    fields.set('open', nodes.filter((n) => !n.folded && first(n) && !n.local).slice(0, 200)
      .map((n) => n.key).join(','));
    fields.set('filter', rows.filter);
    if (app.area) fields.set('area', `${app.area.from}..${app.area.to}`
      + (app.area.all || app.area.rows.length > 100 ? '' : '@' + app.area.rows.map((r) => r[0])
        .join(',')));
    else if (app.selected) fields.set('slice', String(app.selected.slice));
    fields.set('page', app.pages.state);
    fields.set('tab', app.details.isOpen ? app.details.tab : '');
    return fields;
  }

  /** Writes the state soon; often enough for people, seldom enough for the browser's limit. */
  changed() {
    if (this.timer !== null || !this.app.ready) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.app.view.moving) return this.changed();
      return this.write();
    }, PAUSE_MS);
  }

  write() {
    if (this.app.ready) writeFragment(this.fields());
  }
}
