// Written by pmagent connect; pmagent disconnect removes it.
import { spawnSync } from "node:child_process"
const told = (words, payload) => spawnSync(words[0], words.slice(1), {
  input: JSON.stringify(payload), encoding: "utf8", timeout: $milliseconds,
})
const above = new Map(), began = new Map()
const whose = (id) => {
  let sessionID = id
  while (above.has(sessionID)) sessionID = above.get(sessionID)
  return { sessionID, agent: sessionID === id ? "" : id }
}
const begin = (sessionID, version, cwd) => {
  if (began.has(sessionID)) return
  began.set(sessionID, cwd)
  told($created, { sessionID, version, cwd })
}
process.on("exit", () => began.forEach((cwd, sessionID) => {
    told($ended, { sessionID, cwd })
}))
export const Pmagent = async ({ directory }) => ({
  event: async ({ event }) => {
    if (event.type !== "session.created") return
    const { id, parentID, version } = event.properties.info
    if (parentID) return void above.set(id, parentID)
    begin(id, version, directory)
  },
  "tool.execute.before": async (input, output) => {
    const payload = { ...input, ...whose(input.sessionID), args: output.args, cwd: directory }
    begin(payload.sessionID, "", directory)  // one that is taken up again is not created
    const done = told($before, payload)
$refusal  },
  "tool.execute.after": async (input, output) => {
    const payload = { ...input, ...whose(input.sessionID), output: output.output, cwd: directory }
    payload.exit = output.metadata?.exit ?? 0
    told($after, payload)
  },
})
