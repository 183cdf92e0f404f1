// Runs the reference client through what we promise it, and prints one JSON line a
// step: {step, ok, ...}. Arguments: URL, token.
import { randomUUID } from "node:crypto";
import { GatewayClient } from "@openclaw/gateway-client";

const [url, token] = process.argv.slice(2);
const events = [];
const waiting = new Set();

function report(step, result) {
  console.log(JSON.stringify({ step, ok: true, ...result }));
}

// until resolves with the first event that matches, also one that came before.
function until(what, matches) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${what} came`)), 20000);
    const look = () => {
      const found = events.find(matches);
      if (!found) return;
      clearTimeout(timer);
      waiting.delete(look);
      resolve(found);
    };
    waiting.add(look);
    look();
  });
}

const connected = Promise.withResolvers();
const client = new GatewayClient({
  url,
  token,
  minProtocol: 4,
  maxProtocol: 4,
  scopes: ["operator.admin", "operator.read", "operator.write"],
  caps: ["tool-events"],
  onHelloOk: (hello) => connected.resolve(hello),
  onConnectError: (error) => connected.reject(error),
  onEvent: (event) => {
    events.push(event);
    for (const look of waiting) look();
  },
});

async function refused(step, method, params) {
  try {
    await client.request(method, params);
    throw new Error(`${method} was not refused`);
  } catch (error) {
    if (!error.gatewayCode) throw error;
    report(step, { code: error.gatewayCode, message: error.message });
  }
}

try {
  client.start();
  const hello = await connected.promise;
  report("connect", { protocol: hello.protocol, methods: hello.features.methods.length });

  const health = await client.request("health", {});
  report("health", { healthy: health.ok });
  await client.request("status", {});
  report("status", {});
  const agents = await client.request("agents.list", {});
  report("agents.list", { defaultId: agents.defaultId });
  const models = await client.request("models.list", {});
  report("models.list", { count: models.models.length });
  await client.request("commands.list", {});
  report("commands.list", {});

  const key = "agent:main:reference";
  await client.request("sessions.subscribe", {});
  await client.request("sessions.messages.subscribe", { key });
  report("subscribe", {});

  // agent: accepted, then the final, under one request id.
  const runId = randomUUID();
  const params = { message: "reference one", sessionKey: key, idempotencyKey: runId };
  let accepted;
  const final = await client.request("agent", params, { expectFinal: true, onAccepted: (p) => (accepted = p), timeoutMs: 30000 });
  report("agent", { accepted: accepted?.status, runId: accepted?.runId === runId, status: final.status, text: final.result.payloads.map((p) => p.text).join() });
  await until("agent lifecycle end", (e) => e.event === "agent" && e.payload.runId === runId && e.payload.data.phase === "end");
  const mine = events.filter((e) => e.event === "agent" && e.payload.runId === runId);
  report("agent events", { increasing: mine.every((e, i) => i === 0 || e.payload.seq > mine[i - 1].payload.seq), streams: [...new Set(mine.map((e) => e.payload.stream))] });
  const repeat = await client.request("agent", params, { expectFinal: true, timeoutMs: 30000 });
  report("agent repeated", { same: repeat.result.payloads[0].text === final.result.payloads[0].text });
  await refused("agent conflict", "agent", { ...params, message: "another" });
  const wait = await client.request("agent.wait", { runId, timeoutMs: 1000 });
  report("agent.wait", { status: wait.status, ended: wait.endedAt >= wait.startedAt });
  const unknown = await client.request("agent.wait", { runId: randomUUID(), timeoutMs: 0 });
  report("agent.wait unknown", { status: unknown.status, members: Object.keys(unknown).sort() });

  // chat.send: the answer comes as events.
  const chatId = randomUUID();
  const started = await client.request("chat.send", { sessionKey: key, message: "reference two", idempotencyKey: chatId });
  const end = await until("chat final", (e) => e.event === "chat" && e.payload.runId === chatId && e.payload.state === "final");
  report("chat.send", { status: started.status, text: end.payload.message?.content?.map((c) => c.text).join("") });

  // chat.abort in mid-stream: one terminal, and it says so.
  const slowId = randomUUID();
  await client.request("chat.send", { sessionKey: key, message: "reference stall", idempotencyKey: slowId });
  await until("chat delta", (e) => e.event === "chat" && e.payload.runId === slowId && e.payload.state === "delta");
  const abort = await client.request("chat.abort", { sessionKey: key, runId: slowId });
  await until("chat aborted", (e) => e.event === "chat" && e.payload.runId === slowId && e.payload.state === "aborted");
  report("chat.abort", { aborted: abort.aborted, runIds: abort.runIds.length });
  const nothing = await client.request("chat.abort", { sessionKey: key });
  report("chat.abort nothing", { aborted: nothing.aborted });

  const history = await client.request("chat.history", { sessionKey: key, limit: 50 });
  report("chat.history", { roles: history.messages.map((m) => m.role), more: history.hasMore });

  // A tool call, seen by a client with the capability for it.
  const toolId = randomUUID();
  await client.request("agent", { message: "reference tool", sessionKey: key, idempotencyKey: toolId }, { expectFinal: true, timeoutMs: 30000 });
  const phases = events.filter((e) => e.event === "agent" && e.payload.runId === toolId && e.payload.stream === "tool").map((e) => e.payload.data.phase);
  report("tool", { phases });

  // Messages that come while a run is at work: whatever becomes of them, each sender
  // gets one end.
  const longId = randomUUID();
  await client.request("chat.send", { sessionKey: key, message: "reference slow", idempotencyKey: longId });
  await until("delta of the long run", (e) => e.event === "chat" && e.payload.runId === longId && e.payload.state === "delta");
  const later = {};
  for (const queueMode of ["followup", "steer", "collect"]) {
    later[queueMode] = randomUUID();
    await client.request("chat.send", { sessionKey: key, message: `reference ${queueMode}`, idempotencyKey: later[queueMode], queueMode });
  }
  const ends = [];
  for (const runId of [longId, ...Object.values(later)]) {
    let ended;
    do {
      // A turn that has not begun is answered at once: pending.
      ended = await client.request("agent.wait", { runId, timeoutMs: 30000 }, { timeoutMs: 40000 });
      await new Promise((resolve) => setTimeout(resolve, 50));
    } while (ended.status === "pending");
    ends.push(ended.status);
  }
  report("queued", { roles: ends });

  const made = await client.request("sessions.create", { agentId: "main", label: "made" });
  const sent = await client.request("sessions.send", { key: made.key, message: "reference sent", idempotencyKey: randomUUID() });
  await client.request("agent.wait", { runId: sent.runId, timeoutMs: 30000 }, { timeoutMs: 40000 });
  report("sessions.create", { status: sent.status });

  for (const [method, p] of [
    ["chat.startup", { sessionKey: key }],
    ["chat.metadata", {}],
    ["sessions.preview", { keys: [key] }],
    ["sessions.patch", { key, label: "patched" }],
    ["sessions.messages.unsubscribe", { key }],
    ["sessions.unsubscribe", {}],
    ["sessions.list", {}],
    ["sessions.describe", { key }],
    ["sessions.resolve", { key }],
    ["sessions.get", { key }],
    ["chat.inject", { sessionKey: key, message: "a note" }],
    ["sessions.abort", { key }],
    ["sessions.reset", { key }],
    ["sessions.delete", { key }],
  ]) {
    await client.request(method, p);
    report(method, {});
  }
  await refused("sessions.resolve missing", "sessions.resolve", { key: "agent:main:nobody" });
  await refused("unknown method", "no.such.method", {});
  await refused("missing param", "agent", { message: "x" });
  await refused("extra param", "agent", { message: "x", idempotencyKey: randomUUID(), foo: 1 });
  await refused("unknown agent", "agent", { message: "x", idempotencyKey: randomUUID(), agentId: "nobody" });
  client.stop();
} catch (error) {
  console.log(JSON.stringify({ step: "failed", ok: false, error: String(error?.stack ?? error) }));
  process.exitCode = 1;
  client.stop();
}
