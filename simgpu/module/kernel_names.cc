// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/module/kernel_names.h"

#include <elf.h>

#include <cstring>
#include <optional>

#include "simgpu/module/kernel_abi.h"

namespace sluice::simgpu {
namespace {

/// Item `index` of a table of T at `offset`, if it lies within the object.
template <typename T>
std::optional<T> At(std::string_view object, uint64_t offset, uint64_t index = 0) {
  uint64_t begin = 0;
  uint64_t end = 0;
  T item;
  if (__builtin_mul_overflow(index, sizeof item, &begin) ||
      __builtin_add_overflow(begin, offset, &begin) ||
      __builtin_add_overflow(begin, sizeof item, &end) || end > object.size()) {
    return std::nullopt;
  }
  memcpy(&item, object.data() + begin, sizeof item);
  return item;
}

/// The text at `offset` up to its NUL; empty when there is none.
std::string_view Text(std::string_view object, uint64_t offset) {
  if (offset >= object.size()) return {};
  const std::string_view rest = object.substr(offset);
  const size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

}  // namespace

std::vector<std::string> KernelNames(std::string_view object) {
  constexpr std::string_view kPrefix = SIMGPU_KERNEL_PREFIX;
  std::vector<std::string> names;
  const auto header = At<Elf64_Ehdr>(object, 0);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return names;
  }
  for (uint32_t i = 0; i < header->e_shnum; ++i) {
    const auto section = At<Elf64_Shdr>(object, header->e_shoff, i);
    if (!section || section->sh_type != SHT_DYNSYM) continue;
    const auto strings = At<Elf64_Shdr>(object, header->e_shoff, section->sh_link);
    for (uint64_t k = 0; strings && k < section->sh_size / sizeof(Elf64_Sym); ++k) {
      const auto symbol = At<Elf64_Sym>(object, section->sh_offset, k);
      if (!symbol) break;
      uint64_t at = 0;
      if (symbol->st_shndx == SHN_UNDEF ||
          __builtin_add_overflow(strings->sh_offset, uint64_t{symbol->st_name}, &at)) {
        continue;
      }
      const std::string_view name = Text(object, at);
      if (name.starts_with(kPrefix)) names.emplace_back(name.substr(kPrefix.size()));
    }
  }
  return names;
}

}  // namespace sluice::simgpu
