// A row that the page made itself, from a query's result or a path: intervals in lines that do not overlap.

import { parseWhole } from './time.js';

export class LocalRow {
  /** rows: cells as strings; columns: the places of ts, dur and name (−1: none); styleOf(name, row). */
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
      list.push({ ts, end: dur > 0n ? ts + dur : ts + 1n, name: columns.name >= 0 && row[columns.name] !== null ? row[columns.name] : '', row });
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
