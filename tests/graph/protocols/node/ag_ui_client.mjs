// A front end's side with AG-UI's own client: node ag_ui_client.mjs URL PROMPT
// It confirms the plan and approves each call, and prints what it was told as JSON.
import { HttpAgent } from "@ag-ui/client";

const [url, prompt] = process.argv.slice(2);
const agent = new HttpAgent({ url, threadId: "t" });
const told = { asked: [], texts: [], calls: [], states: [], errors: [] };
let open = [];
let outcome = "";

const subscriber = {
  onTextMessageEndEvent: ({ textMessageBuffer }) => void told.texts.push(textMessageBuffer),
  onToolCallResultEvent: ({ event }) => void told.calls.push([event.toolCallId, event.content]),
  onStateChanged: ({ state }) => void told.states.push(state.status),
  onRunErrorEvent: ({ event }) => void told.errors.push(event.message),
  onRunFinishedEvent: ({ event }) => {
    outcome = event.outcome.type;
    open = event.outcome.interrupts ?? [];
  },
};

function reply({ id, metadata }) {
  const { approvals } = metadata.question;
  const yes = (each) => ({ approval_id: each.approval_id, digest: each.digest, decision: "approve" });
  const payload = approvals ? { decisions: approvals.map(yes) } : { decision: "confirm" };
  return { interruptId: id, status: "resolved", payload };
}

agent.addMessage({ id: "m1", role: "user", content: prompt });
await agent.runAgent({}, subscriber);
while (open.length) {
  told.asked.push(...open.map((each) => each.reason));
  const resume = open.map(reply);
  open = [];
  await agent.runAgent({ resume }, subscriber);
}
console.log(JSON.stringify({ ...told, outcome }));
