// Requests to the server: the token, errors, reconnection.

const TOKEN = 'stave.token';
const FAR_MS = 20;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** "a=1&b=2" of the fragment → Map; what cannot be decoded is left out. */
export function readFragment(hash) {
  const fields = new Map();
  for (const part of hash.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    if (at <= 0) continue;
    try {
      fields.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
    } catch {
      // not percent-encoded text
    }
  }
  return fields;
}

export function writeFragment(fields) {
  const parts = [];
  for (const [key, value] of fields) {
    if (value !== '' && value !== null && value !== undefined) parts.push(key + '='
      + encodeURIComponent(value).replace(/%2C/g, ','));
  }
  const hash = parts.length ? '#' + parts.join('&') : location.pathname;
  history.replaceState(null, '', hash);
}

/** Takes the token out of the address bar. True if there was one. */
export function takeToken() {
  const fields = readFragment(location.hash);
  const token = fields.get('token');
  if (token === undefined) return false;
  if (/^[A-Za-z0-9_-]{1,256}$/.test(token)) sessionStorage.setItem(TOKEN, token);
  fields.delete('token');
  writeFragment(fields);
  return true;
}

export class Transport {
  /** `changed(state)`: "up", "down" (no answer) or "token" (refused). */
  constructor(changed) {
    this.changed = changed;
    this.state = 'up';
    this.tab = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);
    this.seq = 0;
    this.retry = null;
    this.trips = [];
  }

  /** Is the server behind a slow link? By the shortest of the last round trips. */
  get far() {
    return this.trips.length >= 3 && Math.min(...this.trips) > FAR_MS;
  }

  /** Not worth compressing for. */
  get near() {
    return this.trips.length >= 3 && !this.far;
  }

  measure(ms) {
    this.trips.push(ms);
    if (this.trips.length > 12) this.trips.shift();
  }

  get token() {
    return sessionStorage.getItem(TOKEN) || '';
  }

  set(state) {
    if (this.state === state) return;
    this.state = state;
    this.changed(state);
    if (state === 'down') this.reconnect(500);
  }

  reconnect(delay) {
    clearTimeout(this.retry);
    this.retry = setTimeout(async () => {
      try {
        await this.json('GET', '/api/trace');
      } catch (error) {
        if (this.state === 'down') this.reconnect(Math.min(delay * 1.5, 4000));
      }
    }, delay);
  }

  async request(method, path, body) {
    const options = { method, headers: { 'X-Stave-Token': this.token }, cache: 'no-store',
      credentials: 'omit' };
    if (this.near) options.headers['X-Stave-Near'] = '1';
    if (body !== undefined) {
      options.headers['Content-Type'] = 'application/json';
      options.body = JSON.stringify(body);
    }
    const begin = performance.now();
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      this.set('down');
      throw error;
    }
    this.measure(performance.now() - begin);
    if (!response.ok) throw await this.refused(response);
    return response;
  }

  async refused(response) {
    let message = `the server answered ${response.status}`;
    try {
      message = String((await response.json()).error || message);
    } catch {
      // no JSON: the status says enough
    }
    if (response.status === 401) this.set('token');
    else this.set('up');
    return new ApiError(response.status, message);
  }

  async body(response, how) {
    try {
      const value = await response[how]();
      this.set('up');
      return value;
    } catch (error) {
      if (!(error instanceof SyntaxError)) this.set('down');
      throw error;
    }
  }

  async json(method, path, body) {
    return this.body(await this.request(method, path, body), 'json');
  }

  async binary(path, body) {
    return this.body(await this.request('POST', path, body), 'arrayBuffer');
  }

  async blob(path, body) {
    return this.body(await this.request('POST', path, body), 'blob');
  }
}

/** At most one request in flight and the newest wanted one behind it. */
export class Latest {
  constructor(run) {
    this.run = run;
    this.busy = false;
    this.next = undefined;
  }

  want(what) {
    this.next = what;
    if (!this.busy) this.work();
  }

  get idle() {
    return !this.busy && this.next === undefined;
  }

  async work() {
    this.busy = true;
    while (this.next !== undefined) {
      const what = this.next;
      this.next = undefined;
      try {
        await this.run(what);
      } catch {
        // run() reports what matters; the next wanted one is tried
      }
    }
    this.busy = false;
  }
}
