// SPDX-License-Identifier: Apache-2.0

// Makes and changes elements. No inline styles or handlers: the content security policy forbids them.

const svgNamespace = "http://www.w3.org/2000/svg"

export const find = (selector, root = document) => root.querySelector(selector)

/** An element. `on…` members are listeners, `class` is its class, members in camelCase that the element has are set as
 *  properties, all others are attributes; false, null and undefined are left out. */
export function make(tag, members = {}, ...children) {
  const element = document.createElement(tag)
  for (const [key, value] of Object.entries(members)) {
    if (value === false || value == null) continue
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
    else if (key === "class") element.className = value
    else if (key in element && typeof value !== "string") element[key] = value
    else element.setAttribute(key, value === true ? "" : value)
  }
  element.append(...children.flat().filter((child) => child != null && child !== false))
  return element
}

/** The same for SVG: attributes alone. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(svgNamespace, tag)
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false && value != null) element.setAttribute(key, value)
  }
  element.append(...children)
  return element
}

/** Sets the text where it is another: a text that stays is not read out or selected anew. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
