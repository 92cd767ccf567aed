// SPDX-License-Identifier: Apache-2.0

// Requests to the control server, with the token or the session of a login; answers as values, refusals as `Fault`.

const tokenKey = "framehost-token"

/** What the server says of a request that it refuses: what, where, remedy. */
export class Fault extends Error {
  constructor(status, what, { place = "", remedy = "", code = "", faults = [], logins = [] } = {}) {
    super(what)
    this.status = status
    this.what = what
    this.place = place
    this.remedy = remedy
    this.code = code
    // Each fault, where there are several.
    this.faults = faults
    // How this page may show who is there, where it must.
    this.logins = logins.length > 0 ? logins : ["token"]
  }

  /** `place: what. remedy`, as the program writes it. */
  get text() {
    if (this.faults.length > 1) return this.faults.map((fault) => fault.text).join("\n")
    const sentence = this.place ? `${this.place}: ${this.what}` : this.what
    return `${sentence}${/[.!?]$/.test(sentence) ? "" : "."}${this.remedy ? ` ${this.remedy}` : ""}`
  }
}

/** The token of this tab, or the session of a login. `#token=…` in the address sets it, and is taken from there at once. */
class Session {
  constructor() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token")
    if (given) {
      this.token = given
      history.replaceState(null, "", location.pathname + location.search)
    }
    // Called with the token that was refused, if there was one, and with the ways to show who is there; resolves when there
    // is another.
    this.onUnauthorised = async () => {}
  }

  /** Whether a token is what a login has given. */
  isSession(token) { return /^session-[0-9a-f]{64}$/.test(token ?? "") }

  get token() { return sessionStorage.getItem(tokenKey) }
  set token(value) {
    if (value) sessionStorage.setItem(tokenKey, value)
    else sessionStorage.removeItem(tokenKey)
  }
}

export const session = new Session()

/** Requests under way that people wait for; previews ask for nothing while there are some. */
export let controlsUnderWay = 0

const base = "api/v1/"
const path = (...parts) => base + parts.map(encodeURIComponent).join("/")

async function send(method, address, body, options = {}) {
  const headers = { Accept: options.accept ?? "application/json", ...options.headers }
  const token = options.isLogin ? null : session.token
  if (token) headers.Authorization = `Bearer ${token}`
  if (body !== undefined) headers["Content-Type"] = "application/json"
  let response
  try {
    response = await fetch(address, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: options.signal,
      cache: "no-store", credentials: "omit", redirect: "error", priority: options.priority ?? "auto",
    })
  } catch (error) {
    if (error.name === "AbortError") throw error
    throw new Fault(0, "the server does not answer", { remedy: "Check that the program is still running." })
  }
  if (response.status === 401 && !options.isLogin) {
    const { logins } = await refusal(response)
    await session.onUnauthorised(token, logins)
    // Once more with the new one; a second refusal asks again.
    return send(method, address, body, options)
  }
  if (!response.ok) throw await refusal(response)
  return response
}

function fault(status, error) {
  return new Fault(status, String(error.what ?? error.text ?? "the request was refused"), {
    place: String(error.place ?? ""), remedy: String(error.remedy ?? ""), code: String(error.code ?? ""),
    logins: Array.isArray(error.logins) ? error.logins : [],
  })
}

async function refusal(response) {
  const text = await response.text().catch(() => "")
  try {
    const answer = JSON.parse(text)
    if (typeof answer.error === "string") return new Fault(response.status, answer.error)
    const first = fault(response.status, answer.error)
    first.faults = (answer.faults ?? []).map((error) => fault(response.status, error))
    return first
  } catch {
    return new Fault(response.status, `the server answered with status ${response.status}`, {
      remedy: "If there is a proxy before the server, check the proxy.",
    })
  }
}

async function read(...parts) {
  const response = await send("GET", path(...parts))
  return response.json()
}

async function control(method, address, body) {
  controlsUnderWay += 1
  try {
    const response = await send(method, address, body, { priority: "high" })
    return response.status === 204 ? {} : await response.json().catch(() => ({}))
  } finally {
    controlsUnderWay -= 1
  }
}

export const api = {
  figures: () => read("metrics"),
  chain: () => read("chain"),
  plan: () => read("plan"),
  kinds: () => read("kinds"),
  /** Who this page is, and what it may do: `{ by, name, rights }`. */
  login: () => read("login"),
  stages: () => read("stages"),

  /** A session for a name and a password: `{ session, name, rights }`. */
  async logIn(name, password) {
    const response = await send("POST", path("login"), { name, password }, { isLogin: true, priority: "high" })
    return response.json()
  },
  /** Ends the session; whoever has no session ends nothing. */
  logOut: () => send("DELETE", path("login"), undefined),

  set: (stage, options) => control("PATCH", path("stages", stage, "options"), options),
  command: (stage, name, body = {}) => control("POST", path("stages", stage, "commands", name), body),
  pause: (stage) => control("POST", path("stages", stage, "pause"), {}),
  resume: (stage) => control("POST", path("stages", stage, "resume"), {}),
  detach: (stage) => control("DELETE", path("stages", stage)),
  attach: (branch) => control("POST", path("branches"), branch),
  drain: () => control("POST", path("drain"), {}),

  /** A picture of a stage: `{ blob, frame }`, or null where it has none yet. */
  async picture(stage, form, { signal, priority = "low" } = {}) {
    const query = new URLSearchParams()
    for (const [key, value] of Object.entries(form)) if (value != null && value !== false) query.set(key, value)
    const address = `${path("stages", stage, "picture")}?${query}`
    const response = await send("GET", address, undefined, { accept: "image/*, application/json", signal, priority })
    if (response.status === 204) return null
    const blob = await response.blob()
    return { blob, frame: response.headers.get("Framehost-Frame") }
  },

  /** What happens from now on, as it comes: values of `{ event, data, id }`. Ends when the server closes.
   *
   * `EventSource` cannot send the token; this reads the same stream. */
  async *events(signal, lastID) {
    const headers = lastID ? { "Last-Event-ID": lastID } : {}
    const response = await send("GET", path("events"), undefined, { accept: "text/event-stream", headers, signal })
    yield* readEvents(response.body)
  },
}

// A line longer than this is no event of ours.
const longestLine = 1 << 20

/** The events of a `text/event-stream` (HTML Standard, 9.2.6). */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  let event = ""
  let data = []
  let id
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      rest += value
      if (rest.length > longestLine) throw new Fault(0, "the server sent an event that is too long")
      // A carriage return at the very end may be half of a line's end.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop()
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { event: event || "message", data: data.join("\n"), id }
          event = ""
          data = []
          continue
        }
        const colon = line.indexOf(":")
        if (colon === 0) {
          yield { event: "comment", data: line.slice(1) }
          continue
        }
        const field = colon < 0 ? line : line.slice(0, colon)
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
        if (field === "data") data.push(text)
        else if (field === "event") event = text
        else if (field === "id") id = text
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}
