// Names of slices: the server's number → a place in dense arrays (text, colour, variant), so that
// drawing needs no look-up in a map.

import { HUES, VARIANTS } from './palette.js';

const DENSE = 1 << 20; // numbers below this have a direct table, the rest a map
const MOST = 300000;

function hash(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h ^= h >>> 15;
  return (Math.imul(h, 2246822519) >>> 8) & 0xffff;
}

/** Which lightness a name has. Threads sleep most of the time: that is drawn faintly. */
function variantOf(text) {
  if (text === 'Sleeping' || text === 'sleep') return HUES;
  return text === 'Running' ? 0 : hash(text) % HUES;
}

export class Names {
  constructor() {
    this.clear();
  }

  clear() {
    this.dense = new Int32Array(1024).fill(-1);
    this.sparse = new Map();
    this.number = [0];
    this.text = [''];
    this.known = [true];
    this.variant = new Uint8Array(1024);
    this.colour = new Uint8Array(1024).fill(7); // of a slice of this name, the last that was seen
    this.unknown = new Set();
    this.byText = new Map();
    this.dense[0] = 0;
  }

  /** The place of a name's number; it may be unknown yet. */
  place(number) {
    if (number < this.dense.length) {
      const place = this.dense[number];
      if (place >= 0) return place;
    } else if (number >= DENSE) {
      const place = this.sparse.get(number);
      if (place !== undefined) return place;
    }
    return this.add(number);
  }

  add(number) {
    const place = this.text.length;
    this.number.push(number);
    this.text.push('');
    this.known.push(false);
    if (place >= this.variant.length) this.growStyles();
    this.colour[place] = 7;
    this.unknown.add(number);
    if (number >= DENSE) this.sparse.set(number, place);
    else {
      if (number >= this.dense.length) this.growDense(number);
      this.dense[number] = place;
    }
    return place;
  }

  growStyles() {
    for (const field of ['variant', 'colour']) {
      const next = new Uint8Array(this[field].length * 2);
      next.set(this[field]);
      this[field] = next;
    }
  }

  growDense(number) {
    const next = new Int32Array(Math.min(DENSE, Math.max(number + 1, this.dense.length * 2)))
      .fill(-1);
    next.set(this.dense);
    this.dense = next;
  }

  learn(number, text) {
    if (number === 0) return 0;
    const place = this.place(number);
    if (this.known[place]) return place;
    this.known[place] = true;
    this.text[place] = text;
    this.variant[place] = variantOf(text);
    this.unknown.delete(number);
    this.byText.set(text, place);
    return place;
  }

  /** The style of a text whose number is not at hand. */
  styleOf(text, colour) {
    const place = this.byText.get(text);
    const known = colour !== undefined ? colour : place !== undefined ? this.colour[place] : 7;
    return Math.min(7, known) * VARIANTS + variantOf(text);
  }

  get full() {
    return this.text.length > MOST;
  }

  /** Numbers to ask for; at most 10,000. */
  takeUnknown() {
    const asked = [];
    for (const number of this.unknown) {
      asked.push(number);
      if (asked.length === 10000) break;
    }
    return asked;
  }

  /** What was asked for and is not in the answer has no name. */
  giveUp(numbers) {
    for (const number of numbers) {
      if (this.unknown.delete(number)) this.known[this.place(number)] = true;
    }
  }
}
