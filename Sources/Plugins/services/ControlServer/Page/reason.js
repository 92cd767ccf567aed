// SPDX-License-Identifier: Apache-2.0

// Says why the page's modules were not loaded. A classic script: browsers send `Origin` with modules, so the server may
// refuse those and still give this file.

"use strict"

addEventListener("error", async (event) => {
  if (!(event.target instanceof HTMLScriptElement) || event.target.type !== "module") return
  let text
  try {
    // Browsers send `Origin` with POST too, so it is refused for the same reason. Otherwise nothing but GET is allowed.
    const answer = await fetch("main.js", { method: "POST" })
    const { error } = await answer.json()
    text = answer.status === 405 ? "Reload it." : `${error.what.charAt(0).toUpperCase()}${error.what.slice(1)}. ${error.remedy}`
  } catch {
    text = "The server, or a proxy before it, gave no readable answer."
  }
  if (document.readyState === "loading") await new Promise((resolve) => addEventListener("DOMContentLoaded", resolve))
  const [notice, state] = [document.querySelector("#connection"), document.querySelector("#state")]
  notice.textContent = `The page could not be loaded completely. ${text}`
  notice.hidden = false
  state.dataset.state = "failed"
  state.querySelector(".word").textContent = "Not loaded"
}, true)
