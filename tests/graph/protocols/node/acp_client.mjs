// An editor's side with ACP's own client: node acp_client.mjs FOLDER PROMPT COMMAND ARGS...
// It says yes to all that it is asked, and prints what it was told as JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [folder, prompt, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const updates = [];
const asked = [];

const client = acp
  .client({ name: "reference" })
  .onNotification(acp.methods.client.session.update, (ctx) => {
    updates.push(ctx.params.update);
  })
  .onRequest(acp.methods.client.session.requestPermission, (ctx) => {
    asked.push(ctx.params.toolCall.title);
    const yes = ctx.params.options.find((each) => each.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: yes.optionId } };
  });

const told = await client.connectWith(stream, async (ctx) => {
  const { protocolVersion } = await ctx.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const session = { cwd: folder, mcpServers: [] };
  const { sessionId } = await ctx.request(acp.methods.agent.session.new, session);
  await ctx.request(acp.methods.agent.session.setMode, { sessionId, modeId: "plan_exec" });
  const { stopReason } = await ctx.request(acp.methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: prompt }],
  });
  const shown = updates.length;
  await ctx.request(acp.methods.agent.session.load, { ...session, sessionId });
  return { protocolVersion, stopReason, asked, updates: updates.slice(0, shown), again: updates.slice(shown) };
});
agent.stdin.end();
console.log(JSON.stringify(told));
