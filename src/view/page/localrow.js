// Rows that the page made itself, from a query's result or a path: intervals in lines that do not
// overlap, or the values of a counter.

import { parseWhole } from './time.js';

/** Values over time. points: [{ts, value}] */
export class LocalCounter {
  constructor(points) {
    this.points = points.sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0));
    this.n = points.length;
    const finite = points.map((p) => p.value).filter(Number.isFinite);
    this.min = Math.min(...finite);
    this.max = Math.max(...finite);
    this.finite = finite.length === this.n;
    this.key = '';
  }

  /** The pixels of the view in which the value changes, as the server says them of a counter; the
   * first one has the value from before. */
  pixels(view) {
    const key = `${view.from} ${view.to} ${view.width}`;
    if (key === this.key) return this.drawn;
    const drawn = { pixel: [], min: [], max: [], last: [] };
    for (const { ts, value } of this.points) {
      if (ts >= view.to) break;
      const x = Math.max(-1, Math.floor(view.pixel(ts))), at = drawn.pixel.length - 1;
      const isSame = at >= 0 && drawn.pixel[at] === x, isBefore = x < 0;
      if (!isSame) drawn.pixel.push(x);
      const i = drawn.pixel.length - 1;
      drawn.min[i] = isSame && !isBefore ? Math.min(drawn.min[i], value) : value;
      drawn.max[i] = isSame && !isBefore ? Math.max(drawn.max[i], value) : value;
      drawn.last[i] = value;
    }
    this.key = key;
    this.drawn = drawn;
    return drawn;
  }
}

export class LocalRow {
  /** rows: cells as strings; columns: the places of ts, dur and name (−1: none); styleOf(name,
   * row). */
  constructor(rows, columns, styleOf) {
    this.ts = [];
    this.end = [];
    this.name = [];
    this.style = [];
    this.source = []; // the rows
    const list = [];
    for (const row of rows) {
      const ts = parseWhole(row[columns.ts]), dur = parseWhole(row[columns.dur]);
      if (ts === null || dur === null) continue;
      list.push({ ts, end: dur > 0n ? ts + dur : ts + 1n, name: columns.name >= 0
        && row[columns.name] !== null ? row[columns.name] : '', row });
    }
    list.sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : a.end > b.end ? -1 : 1));
    this.n = list.length;
    this.lines = this.assign(list);
    for (const entry of list) {
      this.ts.push(entry.ts);
      this.end.push(entry.end);
      this.name.push(entry.name);
      this.style.push(styleOf(entry.name, entry.row));
      this.source.push(entry.row);
    }
  }

  /** Each interval goes to the first line that is free. */
  assign(list) {
    const lines = [], ends = [];
    list.forEach((entry, i) => {
      let line = ends.findIndex((end) => end <= entry.ts);
      if (line < 0 && lines.length < 64) {
        line = lines.length;
        lines.push([]);
      } else if (line < 0) line = 63;
      lines[line].push(i);
      ends[line] = entry.end;
    });
    return lines;
  }

  /** The first interval of a line that ends after t. */
  firstFrom(line, t) {
    const list = this.lines[line];
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[list[middle]] <= t) low = middle + 1; else high = middle;
    }
    return low;
  }

  touching(line, from, to) {
    const found = { count: 0, name: null, dur: null, at: -1 };
    const list = this.lines[line] || [];
    for (let i = this.firstFrom(line, from); i < list.length && this.ts[list[i]] < to; i++) {
      const at = list[i], dur = this.end[at] - this.ts[at];
      found.count++;
      if (found.at >= 0 && dur <= BigInt(found.dur)) continue;
      found.at = at;
      found.name = this.name[at];
      found.dur = dur.toString();
    }
    return found;
  }
}
