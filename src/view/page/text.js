// Texts on the canvas: widths and shortened names are cached, so that a frame measures nothing.

export const FONT = '-apple-system, "Segoe UI", Roboto, "Noto Sans", Inter, "Liberation Sans", '
  + 'system-ui, sans-serif';
const MOST = 8000;

export class TextFit {
  constructor(context) {
    this.context = context;
    this.size = 0;
    this.clear();
  }

  clear() {
    this.widths = new Map();
    this.whole = new Map();
    this.short = new Map();
  }

  /** The size of the font; a canvas that got another size has forgotten it: set `size` to 0
   * then. */
  use(size) {
    if (size === this.size) return;
    this.context.font = `${size}px ${FONT}`;
    this.size = size;
    this.clear();
  }

  charWidth(char) {
    let width = this.widths.get(char);
    if (width === undefined) {
      width = this.context.measureText(char).width;
      if (this.widths.size > MOST) this.widths.clear();
      this.widths.set(char, width);
    }
    return width;
  }

  width(text) {
    let width = this.whole.get(text);
    if (width === undefined) {
      width = 0;
      for (const char of text) width += this.charWidth(char);
      if (this.whole.size > MOST) this.whole.clear();
      this.whole.set(text, width);
    }
    return width;
  }

  /** The text, or as much of it as fits with "…", or "" when that is less than two letters. */
  fit(text, room) {
    if (this.width(text) <= room) return text;
    const key = (room >> 2) + ' ' + text;
    let short = this.short.get(key);
    if (short === undefined) {
      short = this.cut(text, (room >> 2) * 4);
      if (this.short.size > MOST) this.short.clear();
      this.short.set(key, short);
    }
    return short;
  }

  /** "void " before the name of a kernel says least of it. */
  cut(whole, room) {
    const text = whole.startsWith('void ') ? whole.slice(5) : whole;
    let width = this.charWidth('…'), n = 0, kept = '';
    for (const char of text) {
      width += this.charWidth(char);
      if (width > room) break;
      kept += char;
      n++;
    }
    return n < 2 ? '' : kept + '…';
  }
}
