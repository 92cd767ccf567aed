// SPDX-License-Identifier: Apache-2.0

// The form for a name and a password, or for the token. A login gives a session, which is used like a token.

import { api, session } from "./api.js"
import { find, setText } from "./dom.js"

let login = null

/** Asks who is there, once for all requests that were refused with `used`; resolves when there is another token or session.
 *  - ways: what the server takes: "user", "token". */
export function askForLogin(used, ways) {
  if (session.token !== used && session.token) return Promise.resolve()
  login ??= new Promise((resolve) => {
    const form = new LoginForm(ways, () => {
      login = null
      resolve()
    })
    session.token = null
    form.open(!used ? "" : session.isSession(used) ? "Your session has ended. Sign in again." : "The server did not accept this token.")
  })
  return login
}

class LoginForm {
  constructor(ways, onDone) {
    this.ways = ways
    this.onDone = onDone
    this.dialog = find("#login")
    const [name, password, token] = ["#login-name", "#login-password", "#token"].map((selector) => find(selector))
    Object.assign(this, { name, password, token, other: find("#login-other") })
  }

  open(text) {
    this.choose(this.ways.includes("user") ? "user" : "token")
    this.say(text)
    for (const field of [this.name, this.password, this.token]) field.value = ""
    this.dialog.oncancel = (event) => event.preventDefault()
    this.other.hidden = !(this.ways.includes("user") && this.ways.includes("token"))
    this.other.onclick = () => {
      this.choose(this.way === "user" ? "token" : "user")
      this.say("")
      this.first.focus()
    }
    find("form", this.dialog).onsubmit = (event) => {
      event.preventDefault()
      this.submit()
    }
    this.dialog.showModal()
    this.first.focus()
  }

  get first() { return this.way === "user" ? this.name : this.token }

  /** Shows the fields of one way. */
  choose(way) {
    this.way = way
    const isUser = way === "user"
    find("#login-user").hidden = !isUser
    find("#login-token").hidden = isUser
    // A field that is not shown must not hold the form.
    this.name.required = this.password.required = isUser
    this.token.required = !isUser
    setText(this.other, isUser ? "Use the token" : "Use a name and a password")
  }

  say(text) { setText(find("#login-fault"), text) }

  async submit() {
    this.say("")
    if (this.way === "token") return this.close(this.token.value.trim())
    const button = find("button.main", this.dialog)
    button.disabled = true
    try {
      const { session: secret } = await api.logIn(this.name.value, this.password.value)
      this.close(secret)
    } catch (fault) {
      this.say(fault.text ?? String(fault))
      this.password.value = ""
      this.password.focus()
    } finally {
      button.disabled = false
    }
  }

  close(secret) {
    session.token = secret
    for (const field of [this.name, this.password, this.token]) field.value = ""
    this.dialog.close()
    this.onDone()
  }
}
