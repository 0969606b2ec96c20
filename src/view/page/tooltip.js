// The tooltip under the pointer.

import { el } from './dom.js';

export class Tooltip {
  constructor(box) {
    this.box = box;
  }

  show(x, y, head, lines) {
    this.box.replaceChildren(el('div', { class: 'head', text: head }),
      ...lines.map((line) => el('div', { class: 'aside', text: line })));
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = x + 16 + width > innerWidth ? x - 12 - width : x + 16;
    const top = y + 18 + height > innerHeight ? y - 10 - height : y + 18;
    this.box.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  hide() {
    this.box.hidden = true;
  }
}
