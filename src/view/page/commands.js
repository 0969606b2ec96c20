// All commands in one table: keys, help and the palette come from it.

import { el } from './dom.js';

/** `key` is what the event says (one letter: any case); `hold` commands act while the key is
 * down. */
export function commandsOf(app) {
  return [
    { key: 'w', hold: 'in', show: 'W', text: 'Zoom in (hold)' },
    { key: 's', hold: 'out', show: 'S', text: 'Zoom out (hold)' },
    { key: 'a', hold: 'left', show: 'A', text: 'Pan to the left (hold)' },
    { key: 'd', hold: 'right', show: 'D', text: 'Pan to the right (hold)' },
    { key: 'ArrowLeft', hold: 'left', show: '← →', text: 'Pan' },
    { key: 'ArrowRight', hold: 'right' },
    { key: 'ArrowUp', hold: 'up', show: '↑ ↓', text: 'Scroll the rows' },
    { key: 'ArrowDown', hold: 'down' },
    { key: 'f', show: 'F', text: 'Fit the selection; again, or without one: everything',
      act: () => app.fit() },
    { key: '0', show: '0', text: 'Show the whole trace', act: () => app.view.fitAll() },
    { key: 'Backspace', show: '⌫', text: 'Back to the window before', act: () => app.view.back() },
    { key: '/', show: '/', text: 'Search; Enter next hit, Shift+Enter previous',
      act: () => app.focusSearch() },
    { key: '.', show: '.', text: 'Next slice of the same name',
      act: () => app.near('next', 'name') },
    { key: ',', show: ',', text: 'Previous slice of the same name',
      act: () => app.near('previous', 'name') },
    { key: '>', show: '>', text: 'Next of those that a page led to',
      act: () => app.pages.walk.step(1) },
    { key: '<', show: '<', text: 'Previous of those that a page led to',
      act: () => app.pages.walk.step(-1) },
    { key: 'ArrowRight', alt: true, show: 'Alt+→', text: 'Next slice of the line',
      act: () => app.near('next', 'row') },
    { key: 'ArrowLeft', alt: true, show: 'Alt+←', text: 'Previous slice of the line',
      act: () => app.near('previous', 'row') },
    { key: 'ArrowUp', alt: true, show: 'Alt+↑', text: 'Parent of the slice',
      act: () => app.parent() },
    { key: 'ArrowDown', alt: true, show: 'Alt+↓', text: 'First slice below it',
      act: () => app.child() },
    { key: ']', show: ']', text: 'Follow an arrow forwards; of a thread that runs: to whom it woke',
      act: () => app.follow('out') },
    { key: '[', show: '[', text: 'Follow an arrow backwards; of a wait: to who ended it',
      act: () => app.follow('in') },
    { key: 'k', show: 'K', text: 'Critical path of the selection as a row; Esc closes it',
      act: () => app.path.show() },
    { key: 'm', show: 'M', text: 'Mark the selection, the area or the time under the pointer',
      act: () => app.mark() },
    { key: 'e', show: 'E', text: 'Area: the selected slice, else the visible window',
      act: () => app.areaOfView() },
    { key: 'a', ctrl: true, show: 'Ctrl+A', text: 'Area: everything', act: () => app.areaOfAll() },
    { key: 'p', show: 'P', text: 'Pin or unpin the row', act: () => app.current('pin') },
    { key: 'h', show: 'H', text: 'Hide the row', act: () => app.current('hide') },
    { key: 'c', show: 'C', text: 'Fold or unfold the row', act: () => app.current('fold') },
    { key: 'q', show: 'Q', text: 'SQL', act: () => app.focusSql() },
    { key: 'l', show: 'L', text: 'Filter rows', act: () => app.focusFilter() },
    { key: 't', show: 'T', text: 'Dark or light', act: () => app.theme.toggle() },
    ...(app.pages ? app.pages.commands() : []),
    { key: '?', show: '?', text: 'This help', act: () => openHelp(app) },
    { key: ':', show: ': or Ctrl+K', text: 'All commands', act: () => openPalette(app) },
    { key: 'k', ctrl: true, act: () => openPalette(app) },
    { key: 'Escape', show: 'Esc', text: 'Clear the selection, close', act: () => app.escape() },
    { text: 'Export the view as PNG', act: () => app.exporter.png() },
    { text: 'Export the view as SVG', act: () => app.exporter.svg() },
    { text: 'Save the window as a trace', act: () => app.saveCut(app.view.from, app.view.to) },
    { text: 'Fold all groups', act: () => app.foldAll(true) },
    { text: 'Unfold all groups', act: () => app.foldAll(false) },
    { text: 'Show hidden rows', act: () => app.unhide() },
    { text: 'Show or fold away empty rows', act: () => app.toggleEmpty() },
    { text: 'Show marks and notes', act: () => app.details.open('marks') },
    { text: 'Copy the address of this view', act: () => app.copyAddress() },
  ];
}

/** The palette goes to rows, too. */
function rowsOf(app) {
  return [...app.rows.nodes()].slice(0, 5000).map((node) => ({
    text: node.type === 'row' && node.group ? `Row: ${node.name} · ${node.group.name}`
      : `Rows: ${node.name}`,
    act: () => app.goToRow(node), isRow: true,
  }));
}

const MOUSE = [
  ['wheel', 'Scroll the rows'], ['Shift+wheel', 'Pan'], ['Ctrl+wheel', 'Zoom at the pointer'],
  ['click', 'Select the slice'],
  ['drag', 'Select an area'], ['Shift+drag', 'Pan'], ['double click', 'Fit the slice'],
];

export function openHelp(app) {
  const dialog = document.getElementById('dialog');
  const list = el('dl', { class: 'keys' });
  const entries = [...commandsOf(app).filter((c) => c.show && c.text).map((c) => [c.show, c.text]),
    ...MOUSE];
  for (const [keys, text] of entries) list.append(el('dt', {}, el('kbd', { text: keys })),
    el('dd', { text }));
  const close = el('button',
    { type: 'button', class: 'plain close', text: 'Close', onclick: () => dialog.close() });
  dialog.replaceChildren(close, el('h2', { text: 'Keys and mouse' }), list);
  if (!dialog.open) dialog.showModal();
}

export function openPalette(app) {
  const dialog = document.getElementById('palette');
  const commands = [...commandsOf(app).filter((c) => c.text && c.act), ...rowsOf(app)];
  const input = el('input',
    { type: 'text', placeholder: 'Command, page or row', 'aria-label': 'Command, page or row',
      spellcheck: 'false' });
  const list = el('ul', { role: 'listbox', 'aria-label': 'Commands' });
  let shown = [], at = 0;
  const run = (i) => {
    dialog.close();
    if (shown[i]) shown[i].act();
  };
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = commands.filter((c) => (words.length || !c.isRow)
      && words.every((w) => c.text.toLowerCase().includes(w))).slice(0, 200);
    at = Math.max(0, Math.min(at, shown.length - 1));
    list.replaceChildren(
      ...shown.map((c, i) =>
        el('li', { role: 'option', 'aria-selected': String(i === at), onclick: () => run(i) },
          el('span', { text: c.text }), c.show ? el('kbd', { text: c.show }) : null)));
    if (list.children[at]) list.children[at].scrollIntoView({ block: 'nearest' });
  };
  input.addEventListener('input', () => { at = 0; draw(); });
  input.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key === 'ArrowDown') at++; else if (event.key === 'ArrowUp') at--;
      else if (event.key === 'Enter') return run(at); else return undefined;
    event.preventDefault();
    return draw();
  });
  dialog.replaceChildren(input, list);
  draw();
  if (!dialog.open) dialog.showModal();
  input.focus();
}
