// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What jobs are told apart by: the colours of Okabe and Ito, which people with any kind of colour vision can
// tell apart, and a pattern each, so that colour is never alone.
import {makeSvg} from './dom.js';

export const BANDS = 8;
export const OTHERS = BANDS;  // the band of all jobs that have none of their own

const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#8c6bb1', '#8a949e'];

// Lines of a tile of 8 by 8, and how thick. The first is plain.
const PATTERNS = [
  null,
  {path: 'M-2 2L2 -2M-2 10L10 -2M6 10L10 6', width: 1.4},
  {path: 'M2 2h0.010M6 6h0.010', width: 2.4},
  {path: 'M-2 6L2 10M-2 -2L10 10M6 -2L10 2', width: 1.4},
  {path: 'M0 2H8M0 6H8', width: 1.2},
  {path: 'M2 0V8M6 0V8', width: 1.2},
  {path: 'M-2 2L2 -2M-2 10L10 -2M6 10L10 6M-2 6L2 10M-2 -2L10 10M6 -2L10 2', width: 1},
  {path: 'M0 4H8M4 0V8', width: 1.2},
  {path: 'M4 4h0.010', width: 2.4},
];

/** Dark lines on light colours and light lines on dark ones. */
function lineColour(band) {
  return [1, 4, 6].includes(band) ? 'rgb(0 0 0 / 42%)' : 'rgb(255 255 255 / 55%)';
}

export function colourOf(band) {
  return COLOURS[band];
}

const fills = new Map();

/** For a canvas. `shift`: by how many pixels the pattern has moved with what it fills. */
export function fillOf(context, band, shift = 0) {
  const ratio = devicePixelRatio || 1;
  const key = `${band} ${ratio}`;
  if (!fills.has(key)) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = Math.round(8 * ratio);
    const draw = tile.getContext('2d');
    draw.scale(tile.width / 8, tile.height / 8);
    draw.fillStyle = COLOURS[band];
    draw.fillRect(0, 0, 8, 8);
    const pattern = PATTERNS[band];
    if (pattern) {
      draw.strokeStyle = lineColour(band);
      draw.lineWidth = pattern.width;
      draw.lineCap = 'round';
      draw.stroke(new Path2D(pattern.path));
    }
    fills.set(key, {pattern: context.createPattern(tile, 'repeat'), scale: 8 / tile.width});
  }
  const {pattern, scale} = fills.get(key);
  pattern.setTransform(new DOMMatrix().translate(shift, 0).scale(scale));
  return pattern;
}

let tiles = 0;

/** A small square in a band's colour and pattern. */
export function swatch(band) {
  const svg = makeSvg('svg', {class: 'swatch', viewBox: '0 0 16 16', 'aria-hidden': 'true', 'data-band': band});
  svg.append(makeSvg('rect', {width: 16, height: 16, fill: COLOURS[band]}));
  const pattern = PATTERNS[band];
  if (pattern) {
    const id = `tile-${++tiles}`;
    svg.append(
        makeSvg('pattern', {id, width: 8, height: 8, patternUnits: 'userSpaceOnUse'},
                makeSvg('path', {d: pattern.path, stroke: lineColour(band), 'stroke-width': pattern.width,
                                 'stroke-linecap': 'round', fill: 'none'})),
        makeSvg('rect', {width: 16, height: 16, fill: `url(#${id})`}));
  }
  return svg;
}
