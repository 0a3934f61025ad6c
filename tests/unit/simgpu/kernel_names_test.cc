// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/module/kernel_names.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace sluice::simgpu {
namespace {

/// An object with one symbol table: only what KernelNames looks at.
std::string MakeObject(const std::vector<std::string>& symbols) {
  std::string strings(1, '\0');
  std::vector<Elf64_Sym> table(1);
  for (const std::string& name : symbols) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(strings.size());
    symbol.st_shndx = 1;
    table.push_back(symbol);
    strings += name + '\0';
  }
  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shoff = sizeof header;
  Elf64_Shdr sections[2] = {};
  sections[0].sh_type = SHT_DYNSYM;
  sections[0].sh_link = 1;
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = table.size() * sizeof table[0];
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sections[0].sh_offset + sections[0].sh_size;
  sections[1].sh_size = strings.size();
  std::string object(reinterpret_cast<const char*>(&header), sizeof header);
  object.append(reinterpret_cast<const char*>(sections), sizeof sections);
  object.append(reinterpret_cast<const char*>(table.data()), sections[0].sh_size);
  return object + strings;
}

TEST(KernelNames, AreTheSymbolsWithThePrefixInOrder) {
  const std::string object =
      MakeObject({"malloc", "simgpu_kernel_b", "simgpu_kernel_a", "kernel", "simgpu_kernel_"});
  EXPECT_EQ(KernelNames(object), (std::vector<std::string>{"b", "a", ""}));
}

TEST(KernelNames, WhatIsImportedIsNoKernel) {
  std::string object = MakeObject({"simgpu_kernel_a"});
  const size_t at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr) + sizeof(Elf64_Sym);
  const uint16_t undefined = SHN_UNDEF;
  memcpy(object.data() + at + offsetof(Elf64_Sym, st_shndx), &undefined, sizeof undefined);
  EXPECT_TRUE(KernelNames(object).empty());
}

// Under AddressSanitizer this shows that nothing outside the object is read.
TEST(KernelNames, DamagedObjectsAreReadAsFarAsTheyGo) {
  const std::string whole = MakeObject({"simgpu_kernel_a", "simgpu_kernel_b"});
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_LT(KernelNames(std::string_view(cut.data(), cut.size())).size(), 2u) << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<char> bent(whole.begin(), whole.end());
    bent[i] = static_cast<char>(bent[i] ^ 0xff);
    EXPECT_LE(KernelNames(std::string_view(bent.data(), bent.size())).size(), 2u) << i;
  }
}

}  // namespace
}  // namespace sluice::simgpu
