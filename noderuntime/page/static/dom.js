// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Elements. Texts are set as texts, never as markup: names come from whoever starts a job.

export const byId = (id) => document.getElementById(id);

/** Writes only what changed: the browser need not lay out what stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  const text = String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** make('td', {class: 'text'}, child, 'text', ...) */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

const sizes = new WeakMap();
const watch = new ResizeObserver((entries) => {
  for (const {target, contentRect} of entries) sizes.set(target, {width: contentRect.width, height: contentRect.height});
});

/** In CSS pixels, without making the browser lay out the page each time it is asked. */
export function sizeOf(element) {
  let size = sizes.get(element);
  if (!size) {
    size = {width: element.clientWidth, height: element.clientHeight};
    sizes.set(element, size);
    watch.observe(element);
  }
  return size;
}

/** Sizes a canvas for the screen's pixels; its context in CSS pixels. */
export function fitCanvas(canvas) {
  const ratio = devicePixelRatio || 1;
  const {width, height} = sizeOf(canvas);
  const wide = Math.round(width * ratio);
  const high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {context, width, height};
}

/** A colour of the style sheet. */
export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
