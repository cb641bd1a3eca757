"use strict";
// Elements are made from text nodes only: nothing from the model is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "look") setLook(element, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

// Through the object model, which the page's policy allows where attributes are forbidden.
function setLook(element, look) {
  for (const [name, to] of Object.entries(look)) {
    if (to !== undefined && to !== null) element.style.setProperty(name, to);
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

let speaking = 0;

// Say something to those who listen rather than look.
function say(text) {
  clearTimeout(speaking);
  speaking = setTimeout(() => { document.getElementById("said").textContent = text; }, 120);
}
