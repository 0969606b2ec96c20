// The beginning: the token, the state of the trace, the connection.

import { App } from './app.js';
import { publish } from './expose.js';
import { Pages } from './pages.js';
import { drawSketch } from './sketch.js';
import { takeToken, Transport } from './transport.js';

const POLL_MS = 200;
const LIVE_MS = 250;
const byId = (id) => document.getElementById(id);

let status = 'connecting';
let timer = null;

function cover(text, more, progress) {
  byId('cover').hidden = false;
  byId('cover-sketch').hidden = true;
  byId('cover-text').textContent = text;
  byId('cover-more').textContent = more || '';
  const bar = byId('cover-progress');
  bar.hidden = progress === undefined;
  if (progress !== undefined) bar.value = Math.max(0, Math.min(1, Number(progress) || 0));
}

takeToken();
const transport = new Transport(connection);
byId('app').hidden = false;
const app = new App(transport);
app.pages = new Pages(app);
publish(app, () => status);

function noToken() {
  status = 'token';
  if (app.ready) app.say('The server does not know this page’s token: it was started again. Open '
    + 'the URL that it printed.');
  else cover('The token is missing or wrong.',
    'Open the whole URL that “stave view” printed, with #token=… at its end.');
}

function connection(state) {
  if (state === 'token') return noToken();
  if (state === 'down') {
    if (app.ready) app.say('The connection to stave is lost. Trying again …', false);
    else cover('No answer from stave.', 'Is “stave view” still running? Trying again …');
    return schedule(1000);
  }
  app.say('');
  if (app.ready) status = 'ready';
  app.reconnected();
  return schedule(0);
}

function schedule(ms) {
  clearTimeout(timer);
  timer = setTimeout(poll, ms);
}

async function poll() {
  let trace;
  try {
    trace = await transport.json('GET', '/api/trace');
  } catch (error) {
    if (transport.state === 'up') cover('The server refused the page.', error.message);
    else if (transport.state === 'down') schedule(1000);
    else noToken();
    return;
  }
  take(trace);
}

function take(trace) {
  if (trace.state !== 'ready') {
    status = 'loading';
    cover(`Loading ${trace.name || 'the trace'} …`,
      `${Math.round((Number(trace.progress) || 0) * 100)} %`, trace.progress);
    drawSketch(byId('cover-sketch'), trace.sketch, app.palette);
    schedule(POLL_MS);
  } else {
    status = 'ready';
    byId('cover').hidden = true;
    if (!app.ready || app.trace.generation !== trace.generation) {
      app.open(trace);
      app.pages.open(trace);
    }
    if (trace.live) schedule(LIVE_MS);
  }
}

addEventListener('hashchange', () => {
  if (takeToken()) {
    transport.set('up');
    schedule(0);
  } else if (app.ready) app.url.apply();
});

poll();
