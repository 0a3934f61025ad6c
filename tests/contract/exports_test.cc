// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

constexpr int kDriver = 13000;

struct Row {
  const char* symbol;
  const char* base;
  int version;
  bool per_thread;
};

const std::vector<Row>& Table() {
  static const auto* rows = new std::vector<Row>{
#define CU_EXPORT(symbol, base, version, per_thread) {#symbol, #base, version, per_thread != 0},
#include "common/cuda/exports.def"
#undef CU_EXPORT
  };
  return *rows;
}

std::set<std::string> Names() {
  std::set<std::string> names;
  for (const Row& row : Table()) names.insert(row.symbol);
  return names;
}

void* Library() {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return library;
}

/// The defined names in the dynamic symbol table of an ELF file.
std::set<std::string> DefinedNames(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string elf = text.str();
  ElfW(Ehdr) header;
  memcpy(&header, elf.data(), sizeof header);
  std::set<std::string> names;
  const auto section = [&](size_t i) {
    ElfW(Shdr) s;
    memcpy(&s, elf.data() + header.e_shoff + i * header.e_shentsize, sizeof s);
    return s;
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const ElfW(Shdr) symbols = section(i);
    if (symbols.sh_type != SHT_DYNSYM) continue;
    const ElfW(Shdr) strings = section(symbols.sh_link);
    for (size_t at = 0; at < symbols.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      memcpy(&symbol, elf.data() + symbols.sh_offset + at, sizeof symbol);
      const bool function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
      if (symbol.st_shndx != SHN_UNDEF && function) {
        names.insert(elf.data() + strings.sh_offset + symbol.st_name);
      }
    }
  }
  return names;
}

/// What cuGetProcAddress has to answer, said another way than the driver computes it: of the
/// variants of the wanted kind, or of the legacy kind where there is no other, the last one in
/// order of version. Per-thread ones came with 7.0: for an older version there is none, not the
/// other one.
std::string Expected(const std::string& base, int version, bool per_thread) {
  std::vector<Row> variants;
  for (const Row& row : Table()) {
    if (row.base == base && (per_thread || !row.per_thread)) variants.push_back(row);
  }
  const bool kind =
      std::any_of(variants.begin(), variants.end(), [](const Row& row) { return row.per_thread; });
  std::erase_if(variants,
                [&](const Row& row) { return row.per_thread != kind || row.version > version; });
  const auto last =
      std::max_element(variants.begin(), variants.end(),
                       [](const Row& a, const Row& b) { return a.version < b.version; });
  return last == variants.end() ? "" : last->symbol;
}

/// The table is of all platforms.
bool IsHere(const Row& row) { return dlsym(Library(), row.symbol) != nullptr; }

/// The exported name that cuGetProcAddress hands out, "" for none. Two names may be one function:
/// then that of the two which is expected.
std::string Found(const std::string& base, int version, bool per_thread,
                  const std::string& expected, CUdriverProcAddressQueryResult* status) {
  void* pointer = nullptr;
  const cuuint64_t flags =
      per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
  EXPECT_CU(cuGetProcAddress_v2(base.c_str(), &pointer, version, flags, status));
  if (pointer == nullptr) return "";
  if (!expected.empty() && pointer == dlsym(Library(), expected.c_str())) return expected;
  Dl_info info{};
  if (dladdr(pointer, &info) == 0 || info.dli_sname == nullptr) return "(no export)";
  return info.dli_sname;
}

TEST(Exports, NoNameAndNoVariantIsListedTwice) {
  std::set<std::string> names;
  std::set<std::string> variants;
  for (const Row& row : Table()) {
    EXPECT_TRUE(names.insert(row.symbol).second) << row.symbol;
    const std::string variant =
        std::string(row.base) + " " + std::to_string(row.version) + (row.per_thread ? " ptsz" : "");
    EXPECT_TRUE(variants.insert(variant).second) << variant;
    EXPECT_LE(row.version, kDriver) << row.symbol;
    EXPECT_EQ(std::string(row.symbol).rfind(row.base, 0), 0u) << row.symbol;
  }
  // CUDA 13.0: 637 names of the driver and 36 for OpenGL, EGL and VDPAU.
  EXPECT_EQ(names.size(), 673u);
}

TEST(Exports, TheLibraryExportsTheTableAndTwoNamesOfItsOwn) {
  OnlySimulated("a real library may export more");
  ASSERT_NE(Library(), nullptr);
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(Library(), RTLD_DI_LINKMAP, &map), 0);
  auto expected = Names();
  // For programs that replay recorded jobs; no program mistakes them for names of CUDA.
  for (const char* own : {"simgpuHostWork", "simgpuHostClock"}) expected.insert(own);
  EXPECT_EQ(DefinedNames(map->l_name), expected);
}

TEST(Exports, EveryVariantIsFoundFromItsVersionOn) {
  for (const Row& row : Table()) {
    if (!IsHere(row)) continue;
    for (const bool per_thread : {false, true}) {
      if (row.per_thread && !per_thread) continue;
      CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
      const std::string expected = Expected(row.base, row.version, per_thread);
      EXPECT_EQ(Found(row.base, row.version, per_thread, expected, &status), expected)
          << row.symbol << (per_thread ? " per thread" : "");
      EXPECT_EQ(status, expected.empty() ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                         : CU_GET_PROC_ADDRESS_SUCCESS)
          << row.symbol << (per_thread ? " per thread" : "");
    }
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    EXPECT_EQ(Found(row.base, row.version, row.per_thread, row.symbol, &status), row.symbol);
  }
}

TEST(Exports, OneVersionEarlierThereIsTheOneBefore) {
  for (const Row& row : Table()) {
    if (!IsHere(row)) continue;
    const std::string expected = Expected(row.base, row.version - 1, row.per_thread);
    ASSERT_NE(expected, row.symbol);
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    EXPECT_EQ(Found(row.base, row.version - 1, row.per_thread, expected, &status), expected)
        << row.symbol;
    EXPECT_EQ(status, expected.empty() ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                       : CU_GET_PROC_ADDRESS_SUCCESS)
        << row.symbol;
  }
}

/// Whoever looks a function up by its version and whoever looks for the exported name: do both get
/// the same one? A library that stands in between must know.
TEST(Exports, LookupsByVersionAndByNameAgree) {
  size_t same = 0;
  std::string different;
  std::string missing;
  for (const Row& row : Table()) {
    void* pointer = nullptr;
    CUdriverProcAddressQueryResult status{};
    const cuuint64_t flags = row.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                            : CU_GET_PROC_ADDRESS_DEFAULT;
    const CUresult result = cuGetProcAddress_v2(row.base, &pointer, row.version, flags, &status);
    void* const named = dlsym(Library(), row.symbol);
    if (result != CUDA_SUCCESS || pointer == nullptr || named == nullptr) {
      missing += std::string(" ") + row.symbol;
    } else if (pointer != named) {
      different += std::string(" ") + row.symbol;
    } else {
      ++same;
    }
  }
  Answer("found_both_ways_as_one", std::to_string(same));
  Answer("found_as_two", different.empty() ? "none" : different.substr(1));
  Answer("found_one_way_or_no_way", missing.empty() ? "none" : missing.substr(1));
}

TEST(Exports, AnUntypedFunctionSaysOnceThatItIsNotSupported) {
  OnlySimulated("it calls functions without their parameters");
  std::vector<std::string> untyped;
#define CU_UNTYPED(symbol, base, version, per_thread) untyped.push_back(#symbol);
#include "common/cuda/exports.def"
#undef CU_UNTYPED
  ASSERT_FALSE(untyped.empty());
  const std::string& name = untyped.front();
  auto* function = reinterpret_cast<CUresult (*)(void*, int)>(dlsym(Library(), name.c_str()));
  ASSERT_NE(function, nullptr);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(function(nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(function(nullptr, 2), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "simulated GPU: " + name + " is not supported\n");
}

}  // namespace
}  // namespace sluice::contract
