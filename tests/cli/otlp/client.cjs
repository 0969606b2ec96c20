// OpenTelemetry's own SDK as a client: client.cjs NPM_FOLDER HTTP_PORT GRPC_PORT FORM…, forms json, proto, grpc. Prints a line for each exporter that was told
// that its spans arrived, and what it was told otherwise.
const path = require('path');
const [folder, http, grpc, ...forms] = process.argv.slice(2);
const load = (name) => require(path.join(folder, 'node_modules', '@opentelemetry', name));
const api = load('api'), trace = load('sdk-trace'), resources = load('resources');

function exporter(form) {
  if (form === 'grpc') return new (load('exporter-trace-otlp-grpc').OTLPTraceExporter)({ url: `http://127.0.0.1:${grpc}`, compression: 'gzip' });
  const name = form === 'json' ? 'exporter-trace-otlp-http' : 'exporter-trace-otlp-proto';
  return new (load(name).OTLPTraceExporter)({ url: `http://127.0.0.1:${http}/v1/traces`, compression: form === 'proto' ? 'gzip' : 'none' });
}

// The same few spans by each exporter: a parent, a child with an event, an error and a link.
async function run(form) {
  const real = exporter(form);
  let result = null;
  const watched = { export: (spans, done) => real.export(spans, (r) => { result = r; done(r); }), shutdown: () => real.shutdown(), forceFlush: () => real.forceFlush?.() };
  const provider = new trace.TracerProvider({
    resource: resources.resourceFromAttributes({ 'service.name': `js-${form}`, 'process.pid': process.pid }),
    spanProcessors: [new trace.BatchSpanProcessor({ exporter: watched })],
  });
  const tracer = provider.getTracer('real-client', '1.2');
  const parent = tracer.startSpan(`parent ${form}`, { kind: api.SpanKind.CLIENT, attributes: { text: 'ä "quoted"', number: 7, ratio: 0.5, flag: true, list: [1, 2] } });
  const context = api.trace.setSpan(api.ROOT_CONTEXT, parent);
  const child = tracer.startSpan(`child ${form}`, { links: [{ context: parent.spanContext(), attributes: { why: 'test' } }] }, context);
  child.addEvent(`happened ${form}`, { at: 'once' });
  child.setStatus({ code: api.SpanStatusCode.ERROR, message: 'on purpose' });
  child.end();
  parent.end();
  await provider.forceFlush().catch(() => {});
  await provider.shutdown().catch(() => {});
  console.log(form, result && result.code === 0 ? 'taken' : `not taken: ${result && result.error}`);
}

(async () => {
  for (const form of forms) await run(form);
})();
