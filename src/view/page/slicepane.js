// The pane of the selected slice: facts, arguments, parents, flows.

import { btn, el, link } from './dom.js';
import { formatExact, formatSeconds, formatShort } from './time.js';

const durationText = (dur) => (dur < 0n ? 'unfinished' : formatExact(dur));

function facts(entries) {
  return el('dl', { class: 'facts-list' }, ...entries.flatMap(([key, value]) => {
    const dd = el('dd');
    if (value instanceof Node) dd.append(value); else dd.textContent = value;
    return [el('dt', { text: key }), dd];
  }));
}

function withAside(text, aside) {
  return el('span', {}, text + '  ', el('span', { class: 'aside', text: aside }));
}

export class SlicePane {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.clear();
  }

  clear() {
    this.box.replaceChildren(
      el('p', { class: 'hint',
        text: 'Nothing is selected. Click a slice, drag over an area, or search with /.' }));
  }

  fail(message) {
    this.box.replaceChildren(el('p', { class: 'error', text: message }));
  }

  show(detail) {
    const { app } = this;
    const chip = el('span', { class: 'chip' });
    chip.style.background = app.colourOf(detail);
    const moves = el('span', { class: 'moves' },
      btn('‹ previous', () => app.near('previous', 'name'),
        { title: 'Previous slice of this name (,)' }),
      btn('next ›', () => app.near('next', 'name'), { title: 'Next slice of this name (.)' }),
      btn('Within', () => app.areaOfView(),
        { title: 'What happens on all rows within this slice (E)' }),
      btn('Path', () => app.path.show(),
        { title: 'What had to happen for it to end when it did, as a row (K)' }),
      btn('Fit', () => app.fit(), { title: 'Fit the slice into the window (F)' }));
    this.box.replaceChildren(el('div', { class: 'slice' },
      el('h2', {}, chip, el('span', { text: detail.name || '(no name)' }), moves),
      el('div', {}, this.facts(detail)), el('div', {}, this.args(detail)),
        el('div', {}, ...this.wait(detail), ...this.relations(detail))));
  }

  facts(detail) {
    const ts = BigInt(detail.ts), dur = BigInt(detail.dur), self = detail.self === undefined ? null
      : BigInt(detail.self);
    const list = [];
    if (!detail.instant) list.push(['Duration', durationText(detail.unfinished ? -1n : dur)]);
    if (self !== null && !detail.instant && !detail.unfinished) {
      const share = dur > 0n ? Number(self * 1000n / dur) / 10 : 0;
      list.push(['Self time', withAside(formatExact(self), `${share} %`)]);
    }
    list.push([detail.instant ? 'At' : 'Begins', formatSeconds(ts - this.app.zero)]);
    if (!detail.instant && !detail.unfinished) list.push(
      ['Ends', formatSeconds(BigInt(detail.ends) - this.app.zero)]);
    list.push(['Clock', `${detail.ts} ns`]);
    if (detail.category) list.push(['Category', detail.category]);
    if (detail.thread) list.push(['Thread', detail.thread]);
    if (detail.process) list.push(['Process', detail.process]);
    list.push(['Row',
      link(this.app.rowName(detail.row), () => this.app.timeline.reveal(detail.row, detail.line))]);
    list.push(['SQL id', String(detail.id)]);
    const box = el('div');
    box.append(el('h3', { text: detail.instant ? 'Instant' : 'Slice' }), facts(list));
    return box;
  }

  /** What a state or a wait is for, who ended it, and both stacks, innermost first. */
  wait(detail) {
    const { wait } = detail,
      args = new Map((detail.args || [])
      .map((arg) => [arg.key.replace(/^debug\./, ''), arg.value]));
    if (!wait) return [];
    const lock = args.get('lock_name')
      || (args.has('lock') ? `0x${BigInt(args.get('lock')).toString(16)}` : ''), list = [];
    if (wait.what) list.push(['Waits for',
      `${wait.what}${lock ? ` (${lock})` : ''}${wait.assumed ? ', by its call' : ''}`]);
    if (args.has('path')) list.push(['File', args.get('path')]);
    if (args.has('queued')) list.push(['Then for a CPU', formatExact(BigInt(args.get('queued')))]);
    if (wait.interrupt) list.push(
      ['Ended by', `an interrupt${wait.waker ? ` (${wait.waker})` : ''}`]);
    else if (wait.waker || wait.waker_tid) {
      const who = `${wait.waker || 'a thread'}${wait.waker_tid ? ` (tid ${wait.waker_tid})` : ''}`;
      list.push(['Ended by',
        wait.by ? link(who, () => this.app.select(wait.by.slice), 'To what it did then  [')
          : `${who}, which is not recorded`]);
    }
    return [
      ...(list.length ? [el('h3', { text: 'Wait' }), facts(list)] : []),
      ...this.links('Woke  ]', wait.woke || [], 0),
      ...this.stack('Waits in', args.get('stack')),
      ...this.stack('Ended in', args.get('waker_stack')),
    ];
  }

  stack(title, text) {
    if (!text) return [];
    const frames = JSON.parse(text).reverse();
    return [el('h3', { text: title }),
      el('ol', { class: 'stack' }, ...frames.map((frame) => el('li', { text: frame })))];
  }

  args(detail) {
    const box = el('div', {}, el('h3', { text: 'Arguments' }));
    if (!detail.args || !detail.args.length) box.append(el('p', { class: 'hint', text: 'None.' }));
    else box.append(facts(detail.args.filter((arg) => !detail.wait || !/stack$/.test(arg.key))
      .map((arg) => [arg.key.replace(/^debug\./, ''), String(arg.value)])));
    return box;
  }

  links(title, slices, more) {
    if (!slices.length) return [];
    const list = el('ul', { class: 'links' }, ...slices.map((slice) => el('li', {},
      link(slice.name, () => this.app.select(slice.slice)),
      el('span', { class: 'aside', text: `${this.app.rowName(slice.row)} · `
        + `${slice.dur === '-1' ? 'unfinished' : formatShort(BigInt(slice.dur))}` }))));
    if (more) list.append(el('li', { class: 'hint', text: `and ${more} more` }));
    return [el('h3', { text: title }), list];
  }

  relations(detail) {
    const flows = (list) => (list || []).map((flow) => flow.slice);
    const parts = [
      ...this.links('Parents', detail.parents || [], 0),
      ...this.links('Arrows in  [', flows(detail.in), detail.more_in),
      ...this.links('Arrows out  ]', flows(detail.out), detail.more_out),
    ];
    return parts.length || detail.wait ? parts
      : [el('h3', { text: 'Relations' }),
      el('p', { class: 'hint', text: 'No parent and no arrows.' })];
  }
}
