// SPDX-License-Identifier: GPL-2.0-or-later
// A file's text. Only regular files: a FIFO or a device would hold up a start or a reload.
#include <fmt/core.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "config/tree.h"

namespace config {

std::expected<std::string, std::string> read_file(const std::string& path, std::size_t limit) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return std::unexpected("no such file");
  if (error) return std::unexpected(error.message());
  if (status.type() != std::filesystem::file_type::regular)
    return std::unexpected("not a regular file");
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::unexpected(std::strerror(errno));
  std::string text;
  char buffer[1 << 14];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limit) return std::unexpected(fmt::format("larger than {} octets", limit));
  }
  if (stream.bad()) return std::unexpected("read error");
  return text;
}

}  // namespace config
