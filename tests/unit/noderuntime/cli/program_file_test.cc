// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/program_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {
namespace {

class ProgramFileTest : public ::testing::Test {
 protected:
  ProgramFileTest() : dir_(*WorkDir::Create("")) {}

  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string file = dir_.File(name);
    std::ofstream(file, std::ios::binary) << bytes;
    ::chmod(file.c_str(), 0755);
    return file;
  }
  /// A program of one segment; `loader` empty: none is asked for.
  std::string Elf(const std::string& name, const std::string& loader) const {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment = {};
    segment.p_type = loader.empty() ? PT_LOAD : PT_INTERP;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = loader.size() + 1;
    return Write(name, std::string(reinterpret_cast<const char*>(&header), sizeof header) +
                           std::string(reinterpret_cast<const char*>(&segment), sizeof segment) +
                           loader + '\0');
  }

  WorkDir dir_;
};

TEST_F(ProgramFileTest, OrdinaryProgramsAreFine) {
  EXPECT_EQ(WhyNotPreloaded("/proc/self/exe"), "");
  EXPECT_EQ(WhyNotPreloaded("/bin/sh"), "");
  EXPECT_EQ(WhyNotPreloaded(Elf("p", "/lib64/ld-linux-x86-64.so.2")), "");
}

TEST_F(ProgramFileTest, AStaticProgramIsNamed) {
  EXPECT_EQ(WhyNotPreloaded(Elf("p", "")), "it is linked statically");
}

TEST_F(ProgramFileTest, AProgramOfMuslIsNamed) {
  EXPECT_EQ(WhyNotPreloaded(Elf("p", "/lib/ld-musl-x86_64.so.1")),
            "it is linked with musl, and the library needs glibc");
}

TEST_F(ProgramFileTest, AScriptIsItsInterpreter) {
  EXPECT_EQ(WhyNotPreloaded(Write("good", "#!/bin/sh\nexit 0\n")), "");
  const std::string program = Elf("p", "");
  EXPECT_EQ(WhyNotPreloaded(Write("bad", "#! " + program + " -x\n")),
            "it is linked statically (" + program + ")");
  const std::string self = dir_.File("self");
  EXPECT_EQ(WhyNotPreloaded(Write("self", "#!" + self + "\n")), "") << "and ends";
}

TEST_F(ProgramFileTest, AProgramWithRightsOfItsOwnIsNamed) {
  const std::string file = Elf("p", "/lib64/ld-linux-x86-64.so.2");
  ASSERT_EQ(::chmod(file.c_str(), 04755), 0);
  EXPECT_EQ(WhyNotPreloaded(file), "") << "those of who runs it anyway";
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(file.c_str(), 04755), 0);
  EXPECT_EQ(WhyNotPreloaded(file), "it runs with rights of its own");
}

TEST_F(ProgramFileTest, WhatCannotBeReadClaimsNothing) {
  EXPECT_EQ(WhyNotPreloaded(""), "");
  EXPECT_EQ(WhyNotPreloaded("/no/such/file"), "");
  EXPECT_EQ(WhyNotPreloaded(Write("short",
                                  "\x7f"
                                  "ELF")),
            "");
  EXPECT_EQ(WhyNotPreloaded(Write("text", std::string(100, 'x'))), "");
}

TEST_F(ProgramFileTest, IsFoundAsAShellWould) {
  const std::string file = Write("tool", "#!/bin/sh\n");
  const std::string folder = file.substr(0, file.rfind('/'));
  EXPECT_EQ(ProgramFile("tool", "/nowhere:" + folder), file);
  EXPECT_EQ(ProgramFile("/x/tool", folder), "/x/tool");
  EXPECT_EQ(ProgramFile("no-such-tool", folder), "");
}

}  // namespace
}  // namespace sluice::cli
