// Keyboard, mouse, wheel and touchpad.

import { commandsOf } from './commands.js';

const DRAG_LEAST = 4;

const typing = (target) => target instanceof HTMLElement
  && (target.matches('input, textarea, select') || target.isContentEditable);

export class Input {
  constructor(app, canvas, axis) {
    this.app = app;
    this.canvas = canvas;
    this.axis = axis;
    this.commands = commandsOf(app);
    this.drag = null;
    addEventListener('keydown', (event) => this.keyDown(event));
    addEventListener('keyup', (event) => this.keyUp(event));
    addEventListener('blur', () => app.view.releaseAll());
    this.listenPointer(canvas);
    this.listenPointer(axis);
    for (const element of [canvas, axis]) element.addEventListener('wheel',
      (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('pointerleave', () => app.pointer.leave());
    canvas.addEventListener('dblclick', () => app.fit());
  }

  find(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const ctrl = event.ctrlKey || event.metaKey;
    return this.commands.find((c) => c.key === key && Boolean(c.ctrl) === ctrl
      && Boolean(c.alt) === event.altKey);
  }

  keyDown(event) {
    if (event.defaultPrevented || document.querySelector('dialog[open]') || !this.app.ready) return;
    if (typing(event.target)) {
      if (event.key === 'Escape') this.app.focusTimeline();
      if (!(event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey))) return;
    }
    if (event.key.startsWith('Arrow') && event.target.closest
      && event.target.closest('.table, .flame, [role="tab"], .menu')) return;
    if (this.app.pages.key(event)) return;
    const command = this.find(event);
    if (!command) return;
    event.preventDefault();
    if (command.hold) this.app.hold(command.hold, event);
    else if (!event.repeat || command.key === '.' || command.key === ',') command.act();
  }

  keyUp(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    for (const command of this.commands) if (command.hold
      && command.key === key) this.app.view.release(command.hold);
  }

  wheel(event) {
    event.preventDefault();
    const { app } = this, unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    const dx = event.deltaX * unit, dy = event.deltaY * unit;
    app.view.jump = null;
    if (event.ctrlKey || event.metaKey) {
      const factor =
        Math.pow(1.0025, Math.max(-240, Math.min(240, dy)) * (Math.abs(dy) < 12 ? 4 : 1));
      app.view.zoom(factor, this.point(event).x / app.timeline.width);
      return;
    }
    const across = event.shiftKey ? dx + dy : dx;
    if (across) app.view.pan(across / app.timeline.width);
    if (dy && !event.shiftKey) app.timeline.scrollBy(dy);
    app.pointer.move(this.point(event));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  listenPointer(element) {
    element.addEventListener('pointerdown', (event) => this.down(event, element));
    element.addEventListener('pointermove', (event) => this.move(event));
    element.addEventListener('pointerup', (event) => this.up(event));
    element.addEventListener('pointercancel', () => this.end());
  }

  down(event, element) {
    if (event.button !== 0 && event.button !== 1) return;
    if (element === this.canvas) this.canvas.focus({ preventScroll: true });
    element.setPointerCapture(event.pointerId);
    const point = this.point(event), { view, timeline } = this.app;
    const edge = this.app.areaEdge(point.x);
    const mode = event.shiftKey || event.button === 1 ? 'pan' : edge ? 'edge' : 'area';
    view.jump = null;
    this.drag = {
      element, mode, edge, moved: false, x: point.x, y: point.y, from: view.from, to: view.to,
      scroll: timeline.scrollTop, whole: element === this.axis,
    };
  }

  move(event) {
    const point = this.point(event), { drag, app } = this;
    const isEdge = drag ? drag.mode === 'edge' : app.areaEdge(point.x) !== '';
    for (const element of [this.canvas, this.axis]) element.classList.toggle('edge', isEdge);
    if (!drag) return app.pointer.move(point);
    if (!drag.moved && Math.abs(point.x - drag.x) < DRAG_LEAST
      && Math.abs(point.y - drag.y) < DRAG_LEAST) return undefined;
    drag.moved = true;
    app.tooltip.hide();
    if (drag.mode === 'pan') return this.pan(point);
    if (drag.mode === 'edge') return app.dragEdge(drag, point, false);
    drag.element.classList.add('selecting');
    return app.dragArea(drag, point, false);
  }

  pan(point) {
    const { drag, app } = this, { view, timeline } = app;
    drag.element.classList.add('panning');
    const pixels = BigInt(Math.round((drag.x - point.x) * app.dpr));
    const by = pixels * (drag.to - drag.from) / BigInt(view.width);
    view.place(drag.from + by, drag.to + by);
    if (!drag.whole) timeline.scrollTo(drag.scroll + drag.y - point.y);
  }

  up(event) {
    const { drag, app } = this, point = this.point(event);
    this.end();
    if (!drag) return;
    if (drag.mode === 'area' && drag.moved) app.dragArea(drag, point, true);
    else if (drag.mode === 'edge' && drag.moved) app.dragEdge(drag, point, true);
    else if (!drag.moved && drag.element === this.canvas && event.button === 0) app.click(point);
    else if (!drag.moved && drag.element === this.axis) app.clearArea();
  }

  end() {
    for (const element of [this.canvas, this.axis]) element.classList.remove('panning',
      'selecting');
    this.drag = null;
  }
}
