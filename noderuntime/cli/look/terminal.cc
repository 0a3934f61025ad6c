// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/terminal.h"

#include <curses.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>

namespace sluice::cli {

Result<Terminal> Terminal::Open() {
  if (::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0) {
    return Status(StatusCode::kUnavailable, "this is no terminal; sluice top --once prints once");
  }
  // The picture has characters that are not ASCII.
  std::setlocale(LC_CTYPE, "");
  if (::newterm(nullptr, stdout, stdin) == nullptr) {
    return Status(StatusCode::kUnavailable,
                  "TERM names no terminal that is known; sluice top --once prints once");
  }
  ::cbreak();
  ::noecho();
  ::curs_set(0);
  ::keypad(stdscr, true);
  return Terminal();
}

Terminal::Terminal(Terminal&& other) noexcept : mine_(other.mine_) { other.mine_ = false; }

Terminal::~Terminal() {
  if (mine_) ::endwin();
}

size_t Terminal::columns() const { return static_cast<size_t>(getmaxx(stdscr)); }
size_t Terminal::rows() const { return static_cast<size_t>(getmaxy(stdscr)); }

void Terminal::Show(const TopScreen& screen) {
  ::erase();
  for (size_t i = 0; i < screen.lines.size(); ++i) {
    const attr_t look = i == screen.selected           ? A_REVERSE
                        : i == 0 || i == screen.header ? A_BOLD
                                                       : A_NORMAL;
    ::attrset(static_cast<int>(look));
    mvaddstr(static_cast<int>(i), 0, screen.lines[i].c_str());
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

std::optional<Terminal::Key> Terminal::Wait(int milliseconds) {
  ::timeout(milliseconds);
  switch (::getch()) {
    case ERR:
      return std::nullopt;
    case 'q':
      return Key::kQuit;
    case 'p':
    case ' ':
      return Key::kPause;
    case KEY_UP:
    case 'k':
      return Key::kUp;
    case KEY_DOWN:
    case 'j':
      return Key::kDown;
    case 'n':
      return Key::kNumber;
    case 'h':
      return Key::kHeld;
    case 'w':
      return Key::kWaits;
    case 'g':
    case '\t':
      return Key::kNextGpu;
    default:
      return Key::kOther;
  }
}

}  // namespace sluice::cli
