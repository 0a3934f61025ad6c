/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The Sluice authors
 * A program of musl's world: starts, forks, executes another program of its own kind, ends. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int status = 0;
  pid_t child = 0;
  if (argc > 1) {
    puts("executed");
    return 7;
  }
  puts("started");
  fflush(stdout);
  child = fork();
  if (child == 0) {
    execl(argv[0], argv[0], "again", (char*)NULL);
    _exit(1);
  }
  waitpid(child, &status, 0);
  printf("child: %d\n", WEXITSTATUS(status));
  return 3;
}
