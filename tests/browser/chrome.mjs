// Drives Chromium by its own protocol through a pipe: no package is needed beside node and the browser.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const KEYS = {
  Enter: ['Enter', 13, '\r'], Escape: ['Escape', 27], Tab: ['Tab', 9], Backspace: ['Backspace', 8], ArrowLeft: ['ArrowLeft', 37], ArrowUp: ['ArrowUp', 38],
  ArrowRight: ['ArrowRight', 39], ArrowDown: ['ArrowDown', 40], '/': ['Slash', 191], '?': ['Slash', 191], '.': ['Period', 190], ',': ['Comma', 188],
  '[': ['BracketLeft', 219], ']': ['BracketRight', 221], ':': ['Semicolon', 186], ' ': ['Space', 32],
};
const MODS = { alt: 1, ctrl: 2, meta: 4, shift: 8 };

export function findChromium() {
  const names = [process.env.STAVE_CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean);
  for (const name of names) {
    for (const folder of name.includes('/') ? [''] : (process.env.PATH || '').split(':')) {
      const file = path.join(folder, name);
      if (fs.existsSync(file)) return file;
    }
  }
  return null;
}

export class Browser {
  constructor(child) {
    this.child = child;
    this.next = 1;
    this.waiting = new Map();
    this.pages = new Map();
    this.rest = '';
    child.stdio[4].setEncoding('utf8');
    child.stdio[4].on('data', (text) => this.read(text));
    child.on('exit', () => {
      for (const { reject } of this.waiting.values()) reject(new Error('the browser ended'));
      this.waiting.clear();
    });
  }

  static async launch(folder) {
    const file = findChromium();
    const args = ['--headless=new', '--remote-debugging-pipe', `--user-data-dir=${path.join(folder, 'profile')}`, '--no-first-run', '--disable-gpu', '--disable-extensions',
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-default-apps', '--hide-scrollbars', '--mute-audio', '--disable-dev-shm-usage'];
    if (process.getuid && process.getuid() === 0) args.push('--no-sandbox');
    const child = spawn(file, [...args, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    const browser = new Browser(child);
    await browser.send('Browser.getVersion');
    return browser;
  }

  read(text) {
    this.rest += text;
    for (let end = this.rest.indexOf('\0'); end >= 0; end = this.rest.indexOf('\0')) {
      const message = JSON.parse(this.rest.slice(0, end));
      this.rest = this.rest.slice(end + 1);
      if (message.id) {
        const waiting = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        if (message.error) waiting.reject(new Error(`${waiting.method}: ${message.error.message}`)); else waiting.resolve(message.result);
      } else if (this.pages.has(message.sessionId)) this.pages.get(message.sessionId).event(message.method, message.params);
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, method });
      this.child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    });
  }

  async page({ width = 1600, height = 900, scheme = 'light', scale = 1 } = {}) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', newWindow: true });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    this.pages.set(sessionId, page);
    for (const domain of ['Page', 'Runtime', 'Log']) await page.send(`${domain}.enable`);
    await page.send('Page.setLifecycleEventsEnabled', { enabled: true });
    await page.send('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 }); // the tab shall not keep all replies for us
    await page.send('Emulation.setFocusEmulationEnabled', { enabled: true });
    await page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: false });
    await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'no-preference' }] });
    await page.send('Page.addScriptToEvaluateOnNewDocument', {
      source: "window.violations = []; document.addEventListener('securitypolicyviolation', (e) => window.violations.push(e.violatedDirective + ' ' + e.blockedURI));",
    });
    return page;
  }

  async close() {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.send('Browser.close').catch(() => {});
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 3000);
    await ended;
    clearTimeout(timer);
  }
}

export class Page {
  constructor(browser, sessionId, targetId) {
    this.browser = browser;
    this.sessionId = sessionId;
    this.targetId = targetId;
    this.requests = [];
    this.errors = [];
    this.dialogs = [];
    this.loaded = [];
    this.loaders = new Set();
    this.arrived = () => {};
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  event(method, params) {
    if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
    else if (method === 'Runtime.exceptionThrown') this.errors.push(params.exceptionDetails.exception ? params.exceptionDetails.exception.description : params.exceptionDetails.text);
    else if (method === 'Log.entryAdded' && params.entry.level === 'error' && params.entry.source !== 'network') this.errors.push(params.entry.text);
    else if (method === 'Page.javascriptDialogOpening') {
      this.dialogs.push(params.message);
      this.send('Page.handleJavaScriptDialog', { accept: false });
    } else if (method === 'Page.loadEventFired') this.loaded.splice(0).forEach((resolve) => resolve());
    else if (method === 'Page.lifecycleEvent' && params.name === 'load') {
      this.loaders.add(params.loaderId);
      this.arrived();
    }
  }

  /** Resolves when this document is loaded, not the empty one before it. */
  async goto(url) {
    const { loaderId, errorText } = await this.send('Page.navigate', { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    while (!this.loaders.has(loaderId)) await new Promise((resolve) => { this.arrived = resolve; });
  }

  async reload() {
    const loaded = new Promise((resolve) => this.loaded.push(resolve));
    await this.send('Page.reload');
    await loaded;
  }

  /** Runs a function in the page; arguments and result are JSON. */
  async eval(act, ...args) {
    const expression = `(${act})(${args.map((a) => JSON.stringify(a)).join(',')})`;
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception ? exceptionDetails.exception.description : exceptionDetails.text);
    return result.value;
  }

  /** Waits until a function of the page returns something true. */
  async until(act, ...args) {
    for (let i = 0; i < 1200; i++) {
      const value = await this.eval(act, ...args);
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`waited in vain for ${act}`);
  }

  idle() {
    return this.eval(() => window.stave.idle());
  }

  state() {
    return this.eval(() => window.stave.state());
  }

  keyEvent(type, key, mods) {
    const letter = /^[a-z0-9]$/i.test(key);
    const [code, number, text] = KEYS[key] || [letter ? (/\d/.test(key) ? `Digit${key}` : `Key${key.toUpperCase()}`) : '', key.toUpperCase().charCodeAt(0)];
    const modifiers = mods.reduce((sum, mod) => sum + MODS[mod], 0);
    const types = type === 'down' ? (text || key.length === 1) && !(modifiers & 7) ? 'keyDown' : 'rawKeyDown' : 'keyUp';
    const params = { type: types, key, code, windowsVirtualKeyCode: number, modifiers };
    if (types === 'keyDown') params.text = text || key;
    return this.send('Input.dispatchKeyEvent', params);
  }

  async press(key, ...mods) {
    await this.keyEvent('down', key, mods);
    await this.keyEvent('up', key, mods);
  }

  async hold(key, ms) {
    await this.keyEvent('down', key, []);
    await new Promise((resolve) => setTimeout(resolve, ms));
    await this.keyEvent('up', key, []);
  }

  type(text) {
    return this.send('Input.insertText', { text });
  }

  mouse(type, x, y, more = {}) {
    return this.send('Input.dispatchMouseEvent', { type, x, y, ...more });
  }

  async click(x, y) {
    await this.mouse('mouseMoved', x, y);
    await this.mouse('mousePressed', x, y, { button: 'left', clickCount: 1 });
    await this.mouse('mouseReleased', x, y, { button: 'left', clickCount: 1 });
  }

  async drag(x0, y0, x1, y1, ...mods) {
    const modifiers = mods.reduce((sum, mod) => sum + MODS[mod], 0);
    await this.mouse('mouseMoved', x0, y0);
    await this.mouse('mousePressed', x0, y0, { button: 'left', clickCount: 1, modifiers });
    for (let i = 1; i <= 4; i++) await this.mouse('mouseMoved', x0 + (x1 - x0) * i / 4, y0 + (y1 - y0) * i / 4, { button: 'left', buttons: 1, modifiers });
    await this.mouse('mouseReleased', x1, y1, { button: 'left', clickCount: 1, modifiers });
  }

  wheel(x, y, deltaX, deltaY, ...mods) {
    return this.mouse('mouseWheel', x, y, { deltaX, deltaY, modifiers: mods.reduce((sum, mod) => sum + MODS[mod], 0) });
  }

  /** The box of an element: {x, y, width, height}. */
  box(selector) {
    return this.eval((s) => { const b = document.querySelector(s).getBoundingClientRect(); return { x: b.x, y: b.y, width: b.width, height: b.height }; }, selector);
  }

  async clickOn(selector) {
    const b = await this.box(selector);
    await this.click(b.x + b.width / 2, b.y + b.height / 2);
  }

  text(selector) {
    return this.eval((s) => (document.querySelector(s) ? document.querySelector(s).textContent : null), selector);
  }

  async shot(file) {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    fs.writeFileSync(file, Buffer.from(data, 'base64'));
  }
}
