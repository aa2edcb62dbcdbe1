// SPDX-License-Identifier: GPL-2.0-or-later
// The object's maps and programs: loaded, pinned below one folder, reused when the layout is the
// same. For fast_path.cpp.
//
// A set of maps has a folder of its own, <pins>/maps1, maps2 ...; its map "meta" is pinned last, so
// that a set without one is the rest of an attempt that failed.
#pragma once
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dataplane/bpf_attach.h"

namespace dataplane {

// libbpf's own messages are kept, and told with the error, rather than printed.
void capture_libbpf_messages();

// Makes the folder. Mounts the bpffs on /sys/fs/bpf when that is where the folder is and none is
// there.
[[nodiscard]] FastPathResult<void> make_pin_folder(const std::string& folder);

// Nobody else may have it open: two daemons would undo each other's work. Held until closed.
[[nodiscard]] FastPathResult<Fd> lock_folder(const std::string& folder);

// The cookie of the thread's network namespace: never given twice while the kernel runs.
[[nodiscard]] uint64_t netns_cookie();

// Sets of maps below a folder, whole ones first to last. Others are removed.
[[nodiscard]] std::vector<std::string> map_sets(const std::string& folder);
[[nodiscard]] std::string next_map_set(const std::string& folder);  // a name for a new one
void remove_map_set(const std::string& set);

class BpfMaps {
 public:
  // Loads the programs, with the maps of `set` when that is given and fits, else with new ones.
  [[nodiscard]] static FastPathResult<std::unique_ptr<BpfMaps>> load(const FastPathOptions& options,
                                                                     const std::string& set);
  ~BpfMaps();
  BpfMaps(const BpfMaps&) = delete;
  BpfMaps& operator=(const BpfMaps&) = delete;

  [[nodiscard]] bool reused() const { return reused_; }
  [[nodiscard]] int map(const char* name) const;  // descriptor
  [[nodiscard]] int program(int hook) const;      // PL_IN, PL_OUT, kXdpHook, kUnderlayHook
  [[nodiscard]] FastPathResult<void> pin(const std::string& set) const;

 private:
  BpfMaps() = default;
  [[nodiscard]] bool reuse(const std::string& set);
  bpf_object* object_ = nullptr;
  bool reused_ = false;
};

// Visits all elements of a hash map, many with one system call. False on an error.
template <class Key, class Value>
bool for_each_element(int map, const std::function<void(const Key&, const Value&)>& visit) {
  constexpr uint32_t kBatch = 4096;
  std::vector<Key> keys(kBatch);
  std::vector<Value> values(kBatch);
  uint32_t position = 0;
  bool first = true;
  for (;;) {
    uint32_t count = kBatch, next = 0;
    const int status = bpf_map_lookup_batch(map, first ? nullptr : &position, &next, keys.data(),
                                            values.data(), &count, nullptr);
    if (status != 0 && errno != ENOENT) return false;
    for (uint32_t i = 0; i < count; ++i) visit(keys[i], values[i]);
    if (status != 0) return true;
    position = next;
    first = false;
  }
}

}  // namespace dataplane
