// For the tests of the page: the viewer as a process, checks that print `ok NAME` or `not ok NAME`, requests to the viewer.
import { spawn } from 'node:child_process';
import { Browser } from './chrome.mjs';

const { STAVE, TMP } = process.env;
let failed = 0;

export function check(name, good, why = '') {
  if (!good) failed++;
  console.log(`${good ? 'ok' : 'not ok'} ${name}${good || why === '' ? '' : `: ${typeof why === 'string' ? why : JSON.stringify(why)}`}`);
}

export function same(name, got, wanted) {
  check(name, JSON.stringify(got) === JSON.stringify(wanted), `${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`);
}

export class Viewer {
  /** Starts `stave view`; resolves when the address was printed. */
  static async start(file, ...args) {
    const viewer = new Viewer();
    viewer.child = spawn(STAVE, ['view', '--no-browser', ...args, ...[file].flat()], { stdio: ['ignore', 'pipe', 'pipe'] });
    viewer.said = '';
    viewer.child.stderr.on('data', (data) => { viewer.said += data; });
    viewer.ended = new Promise((resolve) => viewer.child.once('exit', (code, signal) => resolve(code === null ? signal : code)));
    viewer.url = await new Promise((resolve, reject) => {
      let text = '';
      viewer.child.stdout.on('data', (data) => {
        text += data;
        const line = /^(http:\S+)\n/.exec(text);
        if (line) resolve(line[1]);
      });
      viewer.ended.then((code) => reject(new Error(`the viewer ended with ${code}: ${viewer.said}`)));
    });
    const url = new URL(viewer.url);
    viewer.origin = url.origin;
    viewer.port = url.port;
    viewer.token = /token=(\w+)/.exec(url.hash)[1];
    return viewer;
  }

  async api(path, body) {
    const options = { headers: { 'X-Stave-Token': this.token } };
    if (body !== undefined) Object.assign(options, { method: 'POST', body: JSON.stringify(body) });
    const response = await fetch(this.origin + path, options);
    return response.json();
  }

  /** The rows of a query. */
  async sql(sql) {
    const answer = await this.api('/api/sql', { sql, limit: 10000 });
    if (answer.error) throw new Error(`${sql}: ${answer.error}`);
    return answer.rows;
  }

  async stop(signal = 'SIGTERM') {
    this.child.kill(signal);
    return this.ended;
  }
}

/** Runs a test with a browser; whatever happens, nothing that it started is left. */
export async function run(act) {
  const viewers = [];
  const start = async (...args) => {
    const viewer = await Viewer.start(...args);
    viewers.push(viewer);
    return viewer;
  };
  let browser = null;
  try {
    browser = await Browser.launch(TMP);
    await act({ browser, start, tmp: TMP });
  } catch (error) {
    check('the_script_runs_to_its_end', false, error.stack.replace(/\n\s*/g, ' | '));
  }
  for (const viewer of viewers) viewer.child.kill('SIGKILL');
  if (browser) await browser.close();
  process.exit(failed ? 1 : 0);
}

/** Opens a page and waits for its first picture. */
export async function open(browser, url, options) {
  const page = await browser.page(options);
  await page.goto(url);
  await page.idle();
  return page;
}

/** A page must not have run into anything: errors, violations of its policy, requests to elsewhere. */
export async function clean(name, page, origin) {
  same(`${name}_no_errors`, page.errors, []);
  same(`${name}_no_csp_violation`, await page.eval(() => window.violations), []);
  same(`${name}_no_dialog`, page.dialogs, []);
  same(`${name}_no_request_elsewhere`, page.requests.filter((url) => !url.startsWith(origin + '/') && !url.startsWith('blob:' + origin) && url !== 'about:blank'), []);
}

/** Pseudo-random numbers that are the same on every run. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** "seconds.nanoseconds" of the text format. */
export const stamp = (ns) => `${ns / 1000000000n}.${(ns % 1000000000n).toString().padStart(9, '0')}`;
