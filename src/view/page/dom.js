// Small helpers for elements. Texts go through textContent only.

/** el('button', {class: 'link', text: 'x', onclick: f, 'aria-label': '…'}, child…) */
export function el(tag, fields = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    if (key === 'text') element.textContent = value;
    else if (key === 'class') element.className = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'hidden' || key === 'disabled') element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

export function btn(text, onclick, fields = {}) {
  return el('button', { type: 'button', class: 'plain', text, onclick, ...fields });
}

export function link(text, onclick, title) {
  return el('button', { type: 'button', class: 'link', text: text || '(no name)', onclick, title });
}

export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const anchor = el('a', { href: url, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 30000);
}

/** Follows the pointer from press to release: begin(event) → start, or null to ignore it;
 * move(event, start); end(start). */
export function onDrag(element, begin, move, end = () => {}) {
  let start = null;
  const stop = () => {
    if (start !== null) end(start);
    start = null;
  };
  element.addEventListener('pointerdown', (event) => {
    start = begin(event);
    if (start !== null) element.setPointerCapture(event.pointerId);
  });
  element.addEventListener('pointermove', (event) => { if (start !== null) move(event, start); });
  element.addEventListener('pointerup', stop);
  element.addEventListener('pointercancel', stop);
}

/** One cell of CSV; a text that a spreadsheet would take for a formula gets an apostrophe. */
function csvCell(value) {
  if (value === null || value === undefined) return '';
  let text = String(value);
  if (/^[=+@\t\r]/.test(text) || (/^-/.test(text) && !/^-[\d.]/.test(text))) text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

export function toCsv(columns, rows) {
  return [columns, ...rows].map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n';
}

/** A popup menu below an element: [{text, key?, act}] or [{note}]. */
export function openMenu(anchor, entries) {
  const menu = document.getElementById('menu');
  const close = () => {
    menu.hidden = true;
    anchor.setAttribute('aria-expanded', 'false');
    removeEventListener('pointerdown', outside, true);
  };
  const outside = (event) => { if (!menu.contains(event.target)) close(); };
  menu.replaceChildren(...entries.map((entry) => {
    if (entry.note !== undefined) return el('p', { text: entry.note });
    const item = el('button',
      { type: 'button', role: 'menuitem', onclick: () => { close(); anchor.focus(); entry.act();
        } }, entry.text);
    if (entry.key) item.append(el('kbd', { text: entry.key }));
    return item;
  }));
  menu.hidden = false;
  const box = anchor.getBoundingClientRect();
  menu.style.left = Math.max(4, Math.min(box.left, innerWidth - menu.offsetWidth - 8)) + 'px';
  menu.style.top = box.bottom + 4 + 'px';
  anchor.setAttribute('aria-expanded', 'true');
  addEventListener('pointerdown', outside, true);
  menu.onkeydown = (event) => {
    const items = [...menu.querySelectorAll('button')], at = items.indexOf(document.activeElement);
    if (event.key === 'Escape') { close(); anchor.focus();
      } else if (event.key === 'ArrowDown' && items.length) items[(at + 1) % items.length].focus();
    else if (event.key === 'ArrowUp'
      && items.length) items[(at - 1 + items.length) % items.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const first = menu.querySelector('button');
  if (first) first.focus();
}
