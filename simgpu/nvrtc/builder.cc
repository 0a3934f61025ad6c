// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/builder.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

#include "simgpu/nvrtc/cache.h"
#include "simgpu/nvrtc/device_files.h"

namespace sluice::simgpu::nvrtc {
namespace {

constexpr std::string_view kUserSourceBegins = "struct simgpu_user_source_begins;";

using Flags = std::vector<std::string>;

// Bit-equality: no contraction, no fast math, nothing tuned to this machine. The relaxations that
// stay (errno, floating-point traps) change no value and let loops be vectorised. Device code
// reinterprets memory freely (float as float4), hence no type-based aliasing.
const Flags kCodeFlags = {"-O3",
                          "-ffp-contract=off",
                          "-fno-math-errno",
                          "-fno-trapping-math",
                          "-fno-strict-aliasing",
                          "-fno-semantic-interposition",
                          "-fno-exceptions",
                          "-fno-rtti",
                          "-fno-threadsafe-statics",
                          "-fno-asynchronous-unwind-tables",
                          "-fno-stack-protector",
                          "-fvisibility=hidden",
                          "-fPIC",
                          "-w"};
// A kernel's static variable must belong to its module alone, also when two modules name it alike.
const Flags kGccFlags = {"-fno-gnu-unique"};
const Flags kLinkFlags = {"-shared",     "-nostdlib",  "-Wl,-Bsymbolic",
                          "-Wl,-z,defs", "-Wl,-z,now", "-Wl,--as-needed",
                          "-lm",         "-lc",        "-lgcc"};
#if defined(__x86_64__)
// NVRTC sees no system headers; a program that needs them must fail here as it does there.
// Elsewhere the fibers need the system's <ucontext.h>.
const Flags kIncludeFlags = {"-nostdinc"};
#else
const Flags kIncludeFlags = {};
#endif

Flags Concatenate(std::initializer_list<Flags> lists) {
  Flags all;
  for (const Flags& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

bool IsFileNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

/// Whether the program's own name may be used for its file.
bool SafeFileName(const std::string& name) {
  return name.ends_with(".cu") && name[0] != '-' && name[0] != '.' &&
         !name.starts_with("simgpu-") && std::all_of(name.begin(), name.end(), IsFileNameChar);
}

bool SafeHeaderName(const std::string& name) {
  return !name.empty() && name[0] != '/' && name.find("..") == std::string::npos;
}

std::string LineDirective(const std::string& name) {
  std::string line = "#line 1 \"";
  for (char c : name) {
    if (c == '"' || c == '\\') line += '\\';
    if (c != '\n') line += c;
  }
  return line + "\"\n";
}

}  // namespace

bool Builder::Run(const std::vector<std::string>& arguments) {
  const RunResult result = RunTool(Concatenate({{compiler_}, arguments}), scratch_.path());
  if (!result.ok) errors_ += result.errors.empty() ? compiler_ + " failed\n" : result.errors;
  return result.ok;
}

bool Builder::WriteSources(const std::string& source, const std::string& name,
                           const std::vector<Header>& headers) {
  if (scratch_.path().empty()) {
    errors_ = "nvrtc: error: cannot make a folder in $TMPDIR or /tmp\n";
    return false;
  }
  bool written = true;
  for (const DeviceFile& file : kDeviceFiles) {
    written &=
        scratch_.Write("simgpu-device/simgpu/" + std::string(file.name), std::string(file.text));
  }
  for (const auto& [header, text] : headers) {
    if (!SafeHeaderName(header)) {
      errors_ = "nvrtc: error: header name '" + header + "' must be relative and without '..'\n";
      return false;
    }
    written &= scratch_.Write("simgpu-headers/" + header, text);
  }
  // The compiler quotes a line of the program where the program's name can be a file's.
  const bool own_name = SafeFileName(name);
  file_ = own_name ? name : "simgpu-program.cu";
  const std::string shown = name.empty() ? "default_program" : name;
  written &= scratch_.Write(file_, own_name ? source : LineDirective(shown) + source);
  if (!written) errors_ = "nvrtc: error: cannot write to " + scratch_.path() + "\n";
  return written;
}

std::optional<std::string> Builder::Preprocess(size_t* user_begin) {
  if (!Run(Concatenate({{"-x", "c++", "-std=" + options_.standard, "-E"},
                        kIncludeFlags,
                        {"-D__CUDA_ARCH__=" + std::to_string(options_.arch * 10)},
                        {"-Isimgpu-device", "-Isimgpu-headers", "-include", "simgpu/cuda_device.h"},
                        options_.compiler_flags,
                        {file_, "-o", "simgpu-program.ii"}}))) {
    return std::nullopt;
  }
  auto text = scratch_.Read("simgpu-program.ii");
  *user_begin = text ? text->find(kUserSourceBegins) : std::string::npos;
  if (*user_begin == std::string::npos) {
    errors_ += "nvrtc: error: " + compiler_ + " gave no preprocessed text\n";
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> Builder::PreprocessFooter(const std::string& exports) {
  scratch_.Write("simgpu-footer.cc", "#include \"simgpu/launch.h\"\n" + exports);
  if (!Run(Concatenate({{"-x", "c++", "-std=" + options_.standard, "-E"},
                        kIncludeFlags,
                        {"-Isimgpu-device", "-Isimgpu-device/simgpu", "simgpu-footer.cc", "-o",
                         "simgpu-footer.ii"}}))) {
    return std::nullopt;
  }
  return scratch_.Read("simgpu-footer.ii");
}

std::vector<std::string> Builder::CodeFlags(bool gcc) const {
  return Concatenate({{"-std=" + options_.standard}, kCodeFlags, gcc ? kGccFlags : Flags{}});
}

std::optional<std::string> Builder::Build(const std::string& translated,
                                          const std::string& exports) {
  const bool gcc = translated.find("simgpu_compiler = \"Clang") == std::string::npos &&
                   translated.find("simgpu_compiler = \"Apple") == std::string::npos;
  const Flags flags = Concatenate({CodeFlags(gcc), {"-x", "none"}, kLinkFlags});
  // The preprocessed text stands for the source, its headers, the options and the compiler's
  // version.
  std::vector<std::string_view> parts = {compiler_, translated, exports};
  parts.insert(parts.end(), flags.begin(), flags.end());
  for (const DeviceFile& file : kDeviceFiles) parts.push_back(file.text);
  const std::string key = HashParts(parts);
  const Cache cache(Cache::DefaultFolder());
  auto object = cache.Get(key);
  from_cache_ = object.has_value();
  if (object) return object;

  const auto footer = PreprocessFooter(exports);
  if (!footer) return std::nullopt;
  scratch_.Write("simgpu-module.ii", translated + "\n" + *footer);
  if (!Run(Concatenate(
          {{"-x", "c++-cpp-output", "simgpu-module.ii"}, flags, {"-o", "simgpu-module.so"}}))) {
    return std::nullopt;
  }
  object = scratch_.Read("simgpu-module.so");
  if (!object || object->empty()) {
    errors_ += "nvrtc: error: " + compiler_ + " gave no object\n";
    return std::nullopt;
  }
  cache.Put(key, *object);
  return object;
}

}  // namespace sluice::simgpu::nvrtc
