// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Numbers for people. Exact figures stand beside them (data-value).

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** "12.4 GiB"; three digits that mean something, whatever the size. */
export function bytes(count) {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

function unitOf(whole) {
  let unit = 0;
  while (whole >= 1024 ** (unit + 1) && unit < UNITS.length - 1) ++unit;
  return unit;
}

/** "GiB" for what is counted in that. */
export function unitLike(whole) {
  return UNITS[unitOf(whole)];
}

/** In the unit of `whole`, without its name, so that digits stand below each other. */
export function numberLike(count, whole) {
  const unit = unitOf(whole);
  return (count / 1024 ** unit).toFixed(unit === 0 ? 0 : whole / 1024 ** unit >= 100 ? 1 : 2);
}

export function bytesLike(count, whole) {
  return `${numberLike(count, whole)} ${unitLike(whole)}`;
}

/** "840 ms", "3.2 s", "4 min 5 s". */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function nanoseconds(ns) {
  return ns < 1e6 ? `${Number((ns / 1e3).toPrecision(3))} µs` : duration(ns / 1e6);
}

/** "12.40 s ago", "now". */
export function ago(ms) {
  return ms <= 0 ? 'now' : `${(ms / 1000).toFixed(2)} s ago`;
}

export function count(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

/** What people know a job by: of NAMESPACE/POD/CONTAINER the pod. */
export function shortName(name) {
  const parts = name.split('/');
  return parts.length === 3 && !name.includes(' ') ? parts[1] : name;
}

/** Of command lines of one program only what tells them apart: Map id -> text, from Map id -> name. */
export function labels(names) {
  const programs = new Map();
  for (const name of names.values()) {
    const words = name.split(' ');
    if (words.length < 2) continue;
    const same = programs.get(words[0]);
    if (same) same.push(words); else programs.set(words[0], [words]);
  }
  const result = new Map();
  for (const [id, name] of names) {
    const words = name.split(' ');
    const all = programs.get(words[0]) ?? [];
    const differs = words.filter((word, i) => i === 0 || all.some((other) => other[i] !== word));
    result.set(id, all.length > 1 && differs.length > 1 ? differs.join(' ') : shortName(name));
  }
  return result;
}
