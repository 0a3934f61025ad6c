// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/process_maps.h"

namespace sluice::simgpu {

bool ProcessMaps::Next(MapLine* line) {
  unsigned long long start = 0;
  unsigned long long end = 0;
  unsigned long long offset = 0;
  unsigned long long inode = 0;
  if (file_ == nullptr || fscanf(file_.get(), "%llx-%llx %4s %llx %x:%x %llu%*[^\n]", &start, &end,
                                 line->rights, &offset, &line->major, &line->minor, &inode) != 7) {
    return false;
  }
  line->start = start;
  line->end = end;
  line->offset = offset;
  line->inode = inode;
  return true;
}

}  // namespace sluice::simgpu
