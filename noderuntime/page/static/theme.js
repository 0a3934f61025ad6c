// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Before anything is drawn, so that no page in the wrong colours is seen first.
'use strict';
(() => {
  try {
    const chosen = localStorage.getItem('sluice-theme');
    if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage: as the system says.
  }
})();
