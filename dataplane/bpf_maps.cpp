// SPDX-License-Identifier: GPL-2.0-or-later
#include "dataplane/bpf_maps.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <filesystem>

namespace dataplane {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBpffs = "/sys/fs/bpf";
constexpr const char* kSetPrefix = "maps";
#ifndef SO_NETNS_COOKIE
constexpr int kNetnsCookie = 71;
#else
constexpr int kNetnsCookie = SO_NETNS_COOKIE;
#endif

// libbpf has one print function for the process.
thread_local std::string messages;

int keep_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char line[512];
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  messages += line;
  if (messages.size() > 4096) messages.erase(0, messages.size() - 4096);
  return length;
}

FastPathError with_messages(FastPathError error) {
  while (!messages.empty() && messages.back() == '\n') messages.pop_back();
  if (!messages.empty()) error.what += " (" + messages + ")";
  messages.clear();
  return error;
}

bool is_bpffs(const std::string& path) {
  struct statfs info{};
  return statfs(path.c_str(), &info) == 0 && info.f_type == BPF_FS_MAGIC;
}

bool same_shape(const bpf_map* map, int fd) {
  bpf_map_info info{};
  uint32_t size = sizeof info;
  return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
         info.type == static_cast<uint32_t>(bpf_map__type(map)) &&
         info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
         info.max_entries == bpf_map__max_entries(map) && info.map_flags == bpf_map__map_flags(map);
}

// The object is of this program's build, as far as layouts tell.
bool object_fits(const bpf_object* object) {
  const std::pair<const char*, std::size_t> values[] = {{"meta", sizeof(pl_meta)},
                                                        {"ports", sizeof(pl_port)},
                                                        {"configs", sizeof(pl_config)},
                                                        {"state", sizeof(pl_state)},
                                                        {"all", sizeof(pl_all)},
                                                        {"near", sizeof(pl_near)},
                                                        {"counts", sizeof(pl_counts)},
                                                        {"drops", sizeof(pl_count)},
                                                        {"bind4", sizeof(pl_binding)},
                                                        {"bind6", sizeof(pl_binding)},
                                                        {"macs", sizeof(uint32_t)},
                                                        {"near_macs", sizeof(uint64_t)},
                                                        {"punts", 0},
                                                        {"lost", sizeof(uint64_t)},
                                                        {"names", sizeof(pl_name)},
                                                        {"reports", 0},
                                                        {"vnis", sizeof(uint32_t)},
                                                        {"vteps", sizeof(pl_vtep)},
                                                        {"underlays", sizeof(pl_underlay)},
                                                        {"vtep_counts", sizeof(pl_vtep_count)}};
  for (const auto& [name, size] : values) {
    const bpf_map* map = bpf_object__find_map_by_name(object, name);
    if (map == nullptr || bpf_map__value_size(map) != size) return false;
  }
  return bpf_map__max_entries(bpf_object__find_map_by_name(object, "meta")) == PL_ABI_VERSION;
}

std::optional<unsigned> set_number(const std::string& name) {
  if (!name.starts_with(kSetPrefix)) return std::nullopt;
  const char* begin = name.c_str() + std::string_view(kSetPrefix).size();
  unsigned number = 0;
  const auto end = std::from_chars(begin, name.c_str() + name.size(), number);
  if (end.ec != std::errc() || *end.ptr != '\0') return std::nullopt;
  return number;
}

}  // namespace

void capture_libbpf_messages() {
  messages.clear();
  libbpf_set_print(keep_message);
}

FastPathResult<void> make_pin_folder(const std::string& folder) {
  std::error_code error;
  if ((folder + "/").starts_with(std::string(kBpffs) + "/") && !is_bpffs(kBpffs) &&
      ::mount("bpf", kBpffs, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") != 0)
    return std::unexpected(bpf_error(std::string("mount a bpffs on ") + kBpffs, errno));
  fs::path there = folder;
  while (!there.empty() && !fs::exists(there, error) && there != there.parent_path())
    there = there.parent_path();
  if (!is_bpffs(there.string()))
    return std::unexpected(FastPathError{
        "pin directory " + folder + ": " + there.string() + " is not on a bpffs", EINVAL});
  fs::create_directories(fs::path(folder) / "links", error);
  if (error)
    return std::unexpected(FastPathError{"make " + folder + ": " + error.message(), error.value()});
  return {};
}

FastPathResult<Fd> lock_folder(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return std::unexpected(bpf_error("open " + folder, errno));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return std::unexpected(
        FastPathError{"pin directory " + folder + " is in use by another process", errno});
  return fd;
}

uint64_t netns_cookie() {
  const Fd any(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!any || ::getsockopt(any.get(), SOL_SOCKET, kNetnsCookie, &cookie, &size) != 0) return 0;
  return cookie;
}

void remove_map_set(const std::string& set) {
  std::error_code ignored;
  fs::remove(set + "/meta", ignored);  // first: from here on it is no set
  fs::remove_all(set, ignored);
}

std::vector<std::string> map_sets(const std::string& folder) {
  std::vector<std::pair<unsigned, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto number = set_number(entry.path().filename().string());
    if (!number) continue;
    if (fs::exists(entry.path() / "meta", error))
      found.emplace_back(*number, entry.path().string());
    else
      remove_map_set(entry.path().string());
  }
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (auto& [number, path] : found) out.push_back(std::move(path));
  return out;
}

std::string next_map_set(const std::string& folder) {
  const auto sets = map_sets(folder);
  const auto last = sets.empty() ? 0 : *set_number(fs::path(sets.back()).filename().string());
  return folder + "/" + kSetPrefix + std::to_string(last + 1);
}

BpfMaps::~BpfMaps() { bpf_object__close(object_); }

int BpfMaps::map(const char* name) const { return bpf_object__find_map_fd_by_name(object_, name); }

int BpfMaps::program(int hook) const {
  const char* name = hook == PL_IN           ? "pl_ingress"
                     : hook == PL_OUT        ? "pl_egress"
                     : hook == kUnderlayHook ? "pl_underlay"
                                             : "pl_xdp";
  return bpf_program__fd(bpf_object__find_program_by_name(object_, name));
}

// All maps of the set, or none.
bool BpfMaps::reuse(const std::string& set) {
  std::vector<std::pair<bpf_map*, Fd>> found;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) {
    if (bpf_map__is_internal(map)) continue;
    Fd fd(bpf_obj_get((set + "/" + bpf_map__name(map)).c_str()));
    if (!fd || !same_shape(map, fd.get())) return false;
    found.emplace_back(map, std::move(fd));
  }
  for (auto& [to, fd] : found)
    if (bpf_map__reuse_fd(to, fd.get()) != 0) return false;
  return true;
}

FastPathResult<std::unique_ptr<BpfMaps>> BpfMaps::load(const FastPathOptions& options,
                                                       const std::string& set) {
  // Twice when a reuse failed half way: an object can't take a map back.
  for (bool reusing : {true, false}) {
    if (reusing && set.empty()) continue;
    std::unique_ptr<BpfMaps> out(new BpfMaps());
    out->object_ = bpf_object__open_file(options.object_file.c_str(), nullptr);
    if (out->object_ == nullptr)
      return std::unexpected(with_messages(bpf_error("open " + options.object_file, errno)));
    if (!object_fits(out->object_))
      return std::unexpected(
          FastPathError{options.object_file + " is of another version than this program", EINVAL});
    const auto resize = [&](const char* name, uint32_t entries) {
      bpf_map__set_max_entries(bpf_object__find_map_by_name(out->object_, name), entries);
    };
    resize("bind4", std::max(1u, options.max_bindings));
    resize("bind6", std::max(1u, options.max_bindings));
    resize("macs", std::max(1u, options.max_macs));
    const auto page = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
    resize("punts", std::bit_ceil(std::clamp(options.ring_bytes, page, 1u << 30)));
    if (reusing && !out->reuse(set)) continue;
    if (const int status = bpf_object__load(out->object_); status != 0)
      return std::unexpected(with_messages(bpf_error("load " + options.object_file, -status)));
    out->reused_ = reusing;
    messages.clear();
    return out;
  }
  return std::unexpected(FastPathError{"load " + options.object_file, EINVAL});
}

FastPathResult<void> BpfMaps::pin(const std::string& set) const {
  std::error_code error;
  fs::create_directories(set, error);
  if (error)
    return std::unexpected(FastPathError{"make " + set + ": " + error.message(), error.value()});
  std::vector<std::string> names;
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) if (!bpf_map__is_internal(map))
      names.emplace_back(bpf_map__name(map));
  std::erase(names, "meta");
  names.emplace_back("meta");
  for (const auto& name : names) {
    const auto path = set + "/" + name;
    if (bpf_obj_pin(this->map(name.c_str()), path.c_str()) != 0)
      return std::unexpected(bpf_error("pin " + path, errno));
  }
  return {};
}

}  // namespace dataplane
