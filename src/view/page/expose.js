// window.stave: for tests and outside judges (docs/view.md).

export function publish(app, status) {
  const next = (act) => (document.hidden ? setTimeout(act, 50) : requestAnimationFrame(act));

  /** Resolves when everything asked for is painted and all names are known, or when there is
   * nothing to wait for. */
  const idle = () => new Promise((resolve) => {
    const check = () => {
      if (app.idle || status() === 'token') resolve(status()); else next(check);
    };
    next(check);
  });

  const rowOf = (place) => {
    const { node } = place, lines = app.rows.linesShown(node);
    return {
      id: node.id, name: node.name, kind: node.counter ? 'counter' : 'slices', depth: lines,
      y: place.y, height: place.height, pinned: place.pinned,
      top: Math.max(place.y, place.clipTop),
      bottom: Math.min(place.y + place.height, place.clipBottom),
    };
  };

  const selection = () => {
    if (app.area) return { kind: 'area', from: app.area.from.toString(), to: app.area.to.toString(),
      rows: app.area.rows.map((r) => r[0]) };
    const s = app.selected;
    return s ? { kind: 'slice', slice: s.slice, id: s.detail.id, name: s.detail.name,
      ts: s.detail.ts, dur: s.detail.dur, row: s.row, depth: s.line } : null;
  };

  const state = () => ({
    status: status(), from: app.view.from.toString(), to: app.view.to.toString(),
    width: app.view.width, scale: app.dpr, first: app.first.toString(), last: app.last.toString(),
    scroll: app.timeline.scrollTop,
    rows: app.timeline.places.filter((p) => p.node.type === 'row' && !p.node.local).map(rowOf),
    path: app.path.isShown
      ? app.path.pieces.map(({ ts, dur, kind, row, slice }) => ({ ts, dur, kind, row, slice }))
      : null, selection: selection(), page: app.pages.current, marks: app.marks.list.length,
    frames: app.frames,
  });

  /** Goes to a window at once: for tests. */
  const go = (from, to) => app.view.place(BigInt(from), BigInt(to));

  window.stave = Object.freeze({ idle, state, pick: (x, y) => app.timeline.pick(x, y), go });
}
